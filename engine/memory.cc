#include "engine/memory.h"

#include <algorithm>

namespace slime {

MemoryCache::~MemoryCache() {
  for (const Entry& entry : entries_) deregister(entry.region, rails_.size());
}

Result<const MemoryRegion*> MemoryCache::acquire(const MemoryRange& range) {
  const std::lock_guard lock(mutex_);
  for (Entry& entry : entries_) {
    if (!entry.region.is(range)) continue;
    ++entry.users;
    return &entry.region;
  }
  auto region = register_everywhere(range);
  if (!region) return fail(region.error());
  entries_.push_front(Entry{std::move(*region), 1});
  return &entries_.front().region;
}

Result<MemoryRegion> MemoryCache::register_everywhere(const MemoryRange& range) {
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
  const auto entry = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& e) { return &e.region == region; });
  if (entry == entries_.end()) return false;
  if (--entry->users > 0) return true;
  deregister(entry->region, rails_.size());
  entries_.erase(entry);
  return true;
}

size_t MemoryCache::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace slime
