// Signals: additions to 64-bit counters in memory of a peer, which its engine carries out.
#pragma once

#include <atomic>
#include <cstdint>

#include "peer/keys.h"

namespace slime {

// The payload of a message of kind kSignal.
struct SignalWords {
  uint64_t region = 0, nonce = 0;  // as in RegionAddress
  uint64_t offset = 0, add = 0;
};

inline constexpr uint64_t kCounterBytes = 8;

// Whether a counter lies there: inside, at a multiple of 8 bytes.
inline bool has_counter(uint64_t base, uint64_t bytes, uint64_t offset) {
  return bytes >= kCounterBytes && offset <= bytes - kCounterBytes &&
         (base + offset) % kCounterBytes == 0;
}

// False: there is no such region, or its counter is not the peer's to change. Threads: any.
inline bool carry_out(const Regions& regions, const SignalWords& signal) {
  const auto region = region_of(regions, signal.region, signal.nonce);
  if (region == nullptr) return false;
  const MemoryRegion& memory = region->memory;
  if (memory.kind != MemoryKind::kHost) return false;
  const auto base = reinterpret_cast<uint64_t>(memory.address);
  if ((region->rights & kRemoteWrite) == 0) return false;
  if (!has_counter(base, memory.bytes, signal.offset)) return false;
  auto* const counter = reinterpret_cast<uint64_t*>(memory.address + signal.offset);
  (void)std::atomic_ref<uint64_t>(*counter).fetch_add(signal.add, std::memory_order_release);
  return true;
}

}  // namespace slime
