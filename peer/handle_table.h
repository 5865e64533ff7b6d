// Objects that programs name by 64-bit handles.
//
//   handle    kind 4 | place 28 | generation 32
//
// A place that is used again has another generation, so an old handle finds nothing. The kind is
// that of the table: the handle of a region finds no peer. 0 is never a handle.
//
// States of a place: free, or taken from add() to remove(). Memory: a place for each object that
// was there at once, kMost at most. Threads: any; a mutex guards all. find() shares the object, so
// it lives until its last user has done with it, also after remove().
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

namespace slime {

enum class HandleKind : uint8_t { kPeer = 1, kRegion, kRemote, kRequest, kNotice, kPlan };

template <typename Object>
class HandleTable {
 public:
  static constexpr size_t kMost = size_t{1} << 28;

  explicit HandleTable(HandleKind kind) : kind_(static_cast<uint64_t>(kind) << 60) {}

  // 0: there are kMost objects.
  uint64_t add(std::shared_ptr<Object> object) {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      if (places_.size() == kMost) return 0;
      free_.push_back(static_cast<uint32_t>(places_.size()));
      places_.emplace_back();
    }
    const uint32_t index = free_.back();
    free_.pop_back();
    Place& place = places_[index];
    place.object = std::move(object);
    if (++place.generation == 0) ++place.generation;
    return kind_ | uint64_t{index} << 32 | place.generation;
  }

  // nullptr: no such object, or not any more.
  std::shared_ptr<Object> find(uint64_t handle) const {
    return find(handle, [](const Object&) { return true; });
  }
  // Also nullptr if `meant` says no. Then no reference is taken, so a caller that does not know
  // enough to name an object cannot make it live longer.
  template <typename Meant>
  std::shared_ptr<Object> find(uint64_t handle, Meant meant) const {
    const std::shared_lock lock(mutex_);
    const Place* const place = place_of(handle);
    return place != nullptr && meant(*place->object) ? place->object : nullptr;
  }

  std::shared_ptr<Object> remove(uint64_t handle) {
    const std::lock_guard lock(mutex_);
    Place* const place = const_cast<Place*>(place_of(handle));
    if (place == nullptr) return nullptr;
    free_.push_back(index_of(handle));
    return std::move(place->object);
  }

  size_t size() const {
    const std::shared_lock lock(mutex_);
    return places_.size() - free_.size();
  }
  std::vector<std::shared_ptr<Object>> all() const {
    const std::shared_lock lock(mutex_);
    std::vector<std::shared_ptr<Object>> objects;
    for (const Place& place : places_) {
      if (place.object != nullptr) objects.push_back(place.object);
    }
    return objects;
  }

 private:
  struct Place {
    std::shared_ptr<Object> object;  // nullptr: it is free
    uint32_t generation = 0;
  };
  static uint32_t index_of(uint64_t handle) { return handle >> 32 & (kMost - 1); }
  const Place* place_of(uint64_t handle) const {
    const uint32_t index = index_of(handle);
    if ((handle ^ kind_) >> 60 != 0 || index >= places_.size()) return nullptr;
    const Place& place = places_[index];
    const bool same = place.generation == static_cast<uint32_t>(handle);
    return same && place.object != nullptr ? &place : nullptr;
  }

  const uint64_t kind_;
  mutable std::shared_mutex mutex_;
  std::vector<Place> places_;
  std::vector<uint32_t> free_;
};

}  // namespace slime
