// Registered memory: one range known to all rails of a device, shared by all comms of the device.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"
#include "transports/rail.h"

namespace slime {

// One range that is registered on every rail of a device, with a key for each rail in their order.
// It never changes, so the data path reads it without a lock.
struct MemoryRegion {
  std::byte* address = nullptr;
  size_t bytes = 0;
  MemoryKind kind = MemoryKind::kHost;
  std::vector<MemoryKeys> keys;

  // The offset of `data` from the beginning of the range.
  uint64_t offset_of(const void* data) const {
    return static_cast<uint64_t>(static_cast<const std::byte*>(data) - address);
  }
  bool contains(const void* data, size_t length) const {
    const auto start = reinterpret_cast<uintptr_t>(address);
    const auto wanted = reinterpret_cast<uintptr_t>(data);
    return wanted >= start && length <= bytes && wanted - start <= bytes - length;
  }
};

// The cache behind regIsGlobal. Users of the same range, with the same rights of peers, share one
// entry, unless they want to be alone, and the last release() deregisters it. A part of a
// registered range gets an entry of its own: if it shared the entry of the whole, it would keep the
// key of the whole valid after the owner of that memory had deregistered it.
//
// Invariants: an entry has at least one user, and does not move while it exists; regions_ has the
// region of each entry and no other. Any thread may call; a mutex guards both.
class MemoryCache {
 public:
  explicit MemoryCache(std::vector<Rail*> rails) : rails_(std::move(rails)) {}
  ~MemoryCache();

  Result<const MemoryRegion*> acquire(const MemoryRange& range);
  // False: `region` is not in this cache, or was released once too often.
  bool release(const MemoryRegion* region);
  size_t size() const;

 private:
  struct Range {
    uintptr_t address = 0;
    size_t bytes = 0;
    MemoryKind kind = MemoryKind::kHost;
    uint8_t rights = 0;
    uint64_t number = 0;  // not 0: of one that shares its entry with nobody
    auto operator<=>(const Range&) const = default;
  };
  struct Entry {
    MemoryRegion region;
    uint32_t users = 0;
  };
  using Entries = std::map<Range, Entry>;
  Result<MemoryRegion> register_everywhere(const MemoryRange& range);
  void deregister(const MemoryRegion& region, size_t rails);

  std::vector<Rail*> rails_;
  mutable Mutex mutex_;
  Entries entries_;
  uint64_t alone_ = 0;  // how many there were that share with nobody
  std::unordered_map<const MemoryRegion*, Entries::iterator> regions_;
};

}  // namespace slime
