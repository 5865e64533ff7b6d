// From handles to memory: finds the regions that assignments name, and checks offsets and rights.
//
// States: it knows the regions of the assignment before, and which ones were named so far. Thread:
// one at a time.
#pragma once

#include <memory>
#include <memory_resource>
#include <unordered_map>
#include <utility>
#include <vector>

#include "peer/engine/assignment.h"
#include "peer/handle_table.h"
#include "peer/keys.h"
#include "peer/moving/peer_request.h"

namespace slime {

using RemoteTable = HandleTable<Imported>;

template <typename Object>
struct Named {
  uint64_t handle = 0;
  std::shared_ptr<Object> object;
};

// What was named so far, each once, in the order of the first time. Few, mostly.
template <typename Object>
class NamedObjects {
 public:
  explicit NamedObjects(std::pmr::memory_resource* memory) : all_(memory) {}

  static constexpr size_t kScanned = 16;  // more than these have an index

  Object* find(uint64_t handle) const {
    if (all_.size() > kScanned) {
      const auto found = places_.find(handle);
      return found != places_.end() ? all_[found->second].object.get() : nullptr;
    }
    for (const auto& one : all_) {
      if (one.handle == handle) return one.object.get();
    }
    return nullptr;
  }
  void add(uint64_t handle, std::shared_ptr<Object> object) {
    all_.push_back({handle, std::move(object)});
    if (all_.size() <= kScanned) return;
    for (size_t i = places_.size(); i < all_.size(); ++i) places_[all_[i].handle] = i;
  }
  const std::pmr::vector<Named<Object>>& all() const { return all_; }

 private:
  std::pmr::vector<Named<Object>> all_;
  std::unordered_map<uint64_t, size_t> places_;  // of all, or of none
};

class Resolver {
 public:
  // `rights`: kRemoteRead, kRemoteWrite or 0, which all remote regions must give. The tables and
  // the memory outlive this.
  Resolver(const Regions& regions, const RemoteTable& remotes, std::pmr::memory_resource* memory,
           uint64_t peer, uint8_t rights)
      : regions_(regions),
        remotes_(remotes),
        peer_(peer),
        rights_(rights),
        locals_(memory),
        named_remotes_(memory) {}

  // `index` is for the error.
  Result<Piece> resolve(const Assignment& assignment, size_t index) {
    if (local_ == nullptr || assignment.local != local_handle_) {
      if (auto found = find_local(assignment.local, index); !found) return fail(found.error());
    }
    if (remote_ == nullptr || assignment.remote != remote_handle_) {
      if (auto found = find_remote(assignment.remote, index); !found) return fail(found.error());
    }
    const bool inside = fits(assignment.local_offset, assignment.bytes, local_->memory.bytes) &&
                        fits(assignment.remote_offset, assignment.bytes, remote_->address.bytes);
    if (!inside) return beyond(assignment, index);
    return Piece{local_->memory.address + assignment.local_offset, &local_->memory, remote_,
                 assignment.remote_offset, assignment.bytes};
  }
  const std::pmr::vector<Named<Region>>& locals() const { return locals_.all(); }
  const std::pmr::vector<Named<Remote>>& remotes() const { return named_remotes_.all(); }
  uint8_t common_rights() const { return common_rights_; }  // of all remote regions

 private:
  static bool fits(uint64_t offset, uint64_t bytes, uint64_t size) {
    return offset <= size && bytes <= size - offset;
  }
  Result<void> find_local(uint64_t handle, size_t index);
  Result<void> find_remote(uint64_t handle, size_t index);
  tl::unexpected<Error> beyond(const Assignment& assignment, size_t index) const;

  const Regions& regions_;
  const RemoteTable& remotes_;
  const uint64_t peer_;
  const uint8_t rights_;
  uint8_t common_rights_ = kRemoteRead | kRemoteWrite;
  uint64_t local_handle_ = 0, remote_handle_ = 0;
  const Region* local_ = nullptr;
  Remote* remote_ = nullptr;
  NamedObjects<Region> locals_;
  NamedObjects<Remote> named_remotes_;
};

}  // namespace slime
