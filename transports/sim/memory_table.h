// Registered memory of one simulated rail. A key names one registration and is never used again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "transports/rail.h"

namespace slime::sim {

class MemoryTable {
 public:
  // The salt keeps the keys of one rail from fitting another by accident.
  explicit MemoryTable(uint64_t salt) : salt_(salt & ~kLocalBit) {}

  MemoryKeys add(uint64_t address, uint64_t bytes, MemoryKind kind) {
    if (free_.empty()) {
      free_.push_back(static_cast<uint32_t>(ranges_.size()));
      ranges_.emplace_back();
    }
    const uint32_t index = free_.back();
    free_.pop_back();
    Range& range = ranges_[index];
    range = {address, bytes, range.generation, kind, true};
    const uint64_t name = uint64_t{range.generation} << 32 | index;
    return {(name << 1 ^ salt_) | kLocalBit, name << 1 ^ salt_};
  }

  // False: these are not the keys of a live registration.
  bool remove(const MemoryKeys& keys) {
    Range* range = find(keys.remote, false);
    if (range == nullptr || range != find(keys.local, true)) return false;
    range->live = false;
    ++range->generation;
    free_.push_back(static_cast<uint32_t>(range - ranges_.data()));
    return true;
  }

  // The range that a remote key is for; empty: there is no such registration.
  struct Known {
    uint64_t address = 0;
    uint64_t bytes = 0;
    MemoryKind kind = MemoryKind::kHost;
  };
  Known range_of(uint64_t remote_key) {
    const Range* range = find(remote_key, false);
    return range == nullptr ? Known{} : Known{range->address, range->bytes, range->kind};
  }

  bool allows(uint64_t key, bool local, uint64_t address, uint64_t bytes) {
    const Range* range = find(key, local);
    return range != nullptr && address >= range->address && bytes <= range->bytes &&
           address - range->address <= range->bytes - bytes;
  }

 private:
  static constexpr uint64_t kLocalBit = 1;
  struct Range {
    uint64_t address = 0;
    uint64_t bytes = 0;
    uint32_t generation = 0;
    MemoryKind kind = MemoryKind::kHost;
    bool live = false;
  };

  Range* find(uint64_t key, bool local) {
    if (((key & kLocalBit) != 0) != local) return nullptr;
    const uint64_t name = ((key & ~kLocalBit) ^ salt_) >> 1;
    const uint64_t index = name & UINT32_MAX;
    if (index >= ranges_.size()) return nullptr;
    Range& range = ranges_[index];
    return range.live && range.generation == name >> 32 ? &range : nullptr;
  }

  const uint64_t salt_;
  std::vector<Range> ranges_;
  std::vector<uint32_t> free_;
};

}  // namespace slime::sim
