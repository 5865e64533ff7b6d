// The bytes by which programs tell each other of engines and of memory. They travel by the
// program's own means, so whatever comes back is checked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "link/setup/setup.h"

namespace slime {

// Random, drawn when the engine is opened: another life of a process has another one.
using EngineId = Nonce;

// Where an engine listens, and what lets a peer in.
struct EngineAddress {
  EngineId engine = {};
  LinkAddress listener = {};
};

// The nonce of that listener.
Nonce nonce_of(const LinkAddress& listener);

// A region of an engine, as its peers see it.
struct RegionAddress {
  EngineId engine = {};
  uint64_t region = 0;  // the handle there
  uint64_t nonce = 0;   // drawn at registration: an old address opens nothing
  uint64_t base = 0, bytes = 0;
  uint8_t rights = 0;      // kRemoteWrite, kRemoteRead
  bool in_device = false;  // not in host memory
};

inline constexpr size_t kRegionBlobBytes = 64;
using RegionBlob = std::array<std::byte, kRegionBlobBytes>;

std::vector<std::byte> pack(const EngineAddress& address);
Result<EngineAddress> unpack_engine(std::span<const std::byte> blob);
RegionBlob pack(const RegionAddress& address);
Result<RegionAddress> unpack_region(std::span<const std::byte> blob);

}  // namespace slime
