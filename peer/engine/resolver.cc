#include "peer/engine/resolver.h"

#include <algorithm>
#include <cinttypes>
#include <utility>

namespace slime {
namespace {

// Few regions, mostly: those that were named before are found again.
constexpr size_t kLookedAt = 16;

template <typename Object>
void add_once(std::vector<Object>* all, Object one) {
  const size_t from = all->size() - std::min(all->size(), kLookedAt);
  if (std::find(all->begin() + static_cast<ptrdiff_t>(from), all->end(), one) == all->end()) {
    all->push_back(std::move(one));
  }
}

}  // namespace

Result<void> Resolver::find_local(uint64_t handle, size_t index) {
  auto region = regions_.find(handle);
  if (region == nullptr) {
    return fail(Status::kInvalid, "assignment %zu: no such local region (any more)", index);
  }
  local_ = region.get();
  local_handle_ = handle;
  add_once(&locals_, {handle, std::move(region)});
  return {};
}

Result<void> Resolver::find_remote(uint64_t handle, size_t index) {
  const auto imported = remotes_.find(handle);
  if (imported == nullptr || imported->peer != peer_) {
    return fail(Status::kInvalid, "assignment %zu: no such region of that peer (any more)", index);
  }
  const uint8_t rights = imported->remote->address.rights;
  if ((rights & rights_) != rights_) {
    return fail(Status::kInvalid, "assignment %zu: that region does not let peers %s", index,
                rights_ == kRemoteRead ? "read" : "write");
  }
  common_rights_ &= rights;
  remote_ = imported->remote.get();
  remote_handle_ = handle;
  add_once(&named_remotes_, {handle, imported->remote});
  return {};
}

tl::unexpected<Error> Resolver::beyond(const Assignment& assignment, size_t index) const {
  const bool here = !fits(assignment.local_offset, assignment.bytes, local_->memory.bytes);
  return fail(Status::kInvalid,
              "assignment %zu: %" PRIu64 " bytes from %" PRIu64
              " on are not inside the %s region of %" PRIu64 " bytes",
              index, assignment.bytes, here ? assignment.local_offset : assignment.remote_offset,
              here ? "local" : "remote", here ? local_->memory.bytes : remote_->address.bytes);
}

}  // namespace slime
