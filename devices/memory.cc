#include "devices/memory.h"

#include <utility>

#include "base/check.h"

namespace slime {

MemoryCache::~MemoryCache() {
  for (const auto& [range, entry] : entries_) deregister(entry.region, rails_.size());
}

Result<const MemoryRegion*> MemoryCache::acquire(const MemoryRange& range) {
  const std::lock_guard lock(mutex_);
  const Range key{reinterpret_cast<uintptr_t>(range.address), range.bytes, range.kind, range.rights,
                  range.alone ? ++alone_ : 0};
  auto found = entries_.find(key);
  if (found == entries_.end()) {
    auto region = register_everywhere(range);
    if (!region) return fail(region.error());
    found = entries_.emplace(key, Entry{std::move(*region), 0}).first;
    regions_.emplace(&found->second.region, found);
  }
  ++found->second.users;
  SLIME_CHECK(regions_.size() == entries_.size());
  return &found->second.region;
}

Result<MemoryRegion> MemoryCache::register_everywhere(const MemoryRange& range) {
  SLIME_CHECK(mutex_.held());
  MemoryRegion region{static_cast<std::byte*>(range.address), range.bytes, range.kind, {}};
  region.keys.reserve(rails_.size());
  for (Rail* rail : rails_) {
    auto keys = rail->register_memory(range);
    if (!keys) {
      deregister(region, region.keys.size());
      return fail(keys.error());
    }
    region.keys.push_back(*keys);
  }
  return region;
}

void MemoryCache::deregister(const MemoryRegion& region, size_t rails) {
  for (size_t i = 0; i < rails; ++i) rails_[i]->deregister_memory(region.keys[i]);
}

bool MemoryCache::release(const MemoryRegion* region) {
  const std::lock_guard lock(mutex_);
  const auto known = regions_.find(region);
  if (known == regions_.end()) return false;
  const auto entry = known->second;
  SLIME_CHECK(&entry->second.region == region && entry->second.users > 0);
  if (--entry->second.users > 0) return true;
  deregister(entry->second.region, rails_.size());
  regions_.erase(known);
  entries_.erase(entry);
  return true;
}

size_t MemoryCache::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace slime
