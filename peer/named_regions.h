// The regions of this engine that peers may list, by name.
//
// Memory: kMost of them. Threads: any; a mutex guards all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "peer/blobs.h"

namespace slime {

struct NamedRegion {
  std::string name;
  RegionBlob blob = {};
};

class NamedRegions {
 public:
  static constexpr size_t kMost = 65'536;
  static constexpr size_t kMostNameBytes = 63;

  Result<void> add(uint64_t region, const NamedRegion& named) {
    const std::lock_guard lock(mutex_);
    if (regions_.size() == kMost) {
      return fail(Status::kNoMemory, "an engine has %zu named regions at most", kMost);
    }
    if (!regions_.emplace(named.name, named.blob).second) {
      return fail(Status::kInvalid, "another region has the name '%s'", named.name.c_str());
    }
    names_[region] = named.name;
    return {};
  }
  void remove(uint64_t region) {
    const std::lock_guard lock(mutex_);
    const auto found = names_.find(region);
    if (found == names_.end()) return;
    regions_.erase(found->second);
    names_.erase(found);
  }
  std::vector<NamedRegion> all() const {
    const std::lock_guard lock(mutex_);
    std::vector<NamedRegion> all;
    for (const auto& [name, blob] : regions_) all.push_back({name, blob});
    return all;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, RegionBlob> regions_;
  std::unordered_map<uint64_t, std::string> names_;  // of these, by handle
};

}  // namespace slime
