#include "peer/engine/resolver.h"

#include <cinttypes>
#include <utility>

namespace slime {
Result<void> Resolver::find_local(uint64_t handle, size_t index) {
  local_handle_ = handle;
  local_ = locals_.find(handle);
  if (local_ != nullptr) return {};
  auto region = regions_.find(handle);
  if (region == nullptr) {
    return fail(Status::kInvalid, "assignment %zu: no such local region (any more)", index);
  }
  local_ = region.get();
  locals_.add(handle, std::move(region));
  return {};
}

Result<void> Resolver::find_remote(uint64_t handle, size_t index) {
  remote_handle_ = handle;
  remote_ = named_remotes_.find(handle);
  if (remote_ != nullptr) return {};
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
  named_remotes_.add(handle, imported->remote);
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
