// Memory of this engine, and of its peers.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "devices/devices.h"
#include "peer/blobs.h"

namespace slime {

// A range that is registered on all rails of the engine, until the last request that uses it has
// ended. It never changes. Threads: any.
class Region {
 public:
  // `keeps` lives as long as the memory is registered.
  Region(MemoryCache& cache, const MemoryRegion* memory, uint8_t rights, uint64_t nonce,
         std::shared_ptr<void> keeps = nullptr)
      : rights(rights), nonce(nonce), memory(*memory), cache_(cache), keeps_(std::move(keeps)) {}
  ~Region() {
    (void)cache_.release(&memory);
    released_->store(true, std::memory_order_release);
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  // True when no rail knows the memory any more.
  std::shared_ptr<const std::atomic<bool>> released() const { return released_; }

  const uint8_t rights;  // of peers
  const uint64_t nonce;  // what a peer must know to get the keys
  const MemoryRegion& memory;

 private:
  MemoryCache& cache_;
  const std::shared_ptr<void> keeps_;
  const std::shared_ptr<std::atomic<bool>> released_ = std::make_shared<std::atomic<bool>>(false);
};

// By which a peer of `engine` knows a region of that engine.
inline RegionAddress address_of(const EngineId& engine, uint64_t handle, const Region& region) {
  const MemoryRegion& memory = region.memory;
  const auto base = reinterpret_cast<uint64_t>(memory.address);
  return {engine,
          handle,
          region.nonce,
          base,
          memory.bytes,
          region.rights,
          memory.kind != MemoryKind::kHost};
}

// A range of a peer, and its keys.
//
// States of the keys: unknown -> asked -> known or refused, or known at once. They are those of one
// link, so they are unknown to another one. Thread: that of the peer's link; `address` never
// changes.
struct Remote {
  enum class Keys : uint8_t { kUnknown, kAsked, kKnown, kRefused };

  explicit Remote(const RegionAddress& of) : address(of) {}

  const RegionAddress address;
  // Before its keys are used on this link.
  void use_on(uint64_t link) {
    if (std::exchange(link_, link) != link) state = Keys::kUnknown;
  }
  // The keys came before anybody asked, at most kMaxRails, for the rails of this link.
  void know(uint64_t link, std::span<const uint64_t> given) {
    link_ = link;
    state = Keys::kKnown;
    std::ranges::copy(given, keys.begin());
  }
  bool is_known_on(uint64_t link) const { return link_ == link && state == Keys::kKnown; }
  // The peer has refused a work with them: the region has gone, and does not come back.
  void refuse() { state = Keys::kRefused; }
  Keys state = Keys::kUnknown;
  std::array<uint64_t, kMaxRails> keys = {};  // for each rail of the link

 private:
  uint64_t link_ = 0;  // its number; 0: none yet
};

}  // namespace slime
