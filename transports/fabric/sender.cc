#include "transports/fabric/sender.h"

#include "base/check.h"
#include "transports/fabric/rail.h"

namespace slime::fabric {
namespace {

constexpr size_t kWarmUpBytes = 8;

}  // namespace

Sender::Sender(FabricRail& rail, const Endpoint& endpoint, bool confirmed)
    : rail_(rail), endpoint_(endpoint), window_(rail.caps().send_queue_depth, confirmed) {}

// Software providers compare the end of a write with that of the region, and let a wrap pass
// (libfabric's ofi_mr_map_verify); NICs do not.
bool Sender::is_valid(const Work& work) const {
  if (work.length == 0) return true;
  if (work.remote_address + work.length < work.length) return false;
  if (rail_.by_offset() && work.remote_offset + work.length < work.length) return false;
  const RegionTable::Pin pin(rail_.regions(), work.local_key,
                             reinterpret_cast<uint64_t>(work.local), work.length);
  return pin.access() == RegionTable::Access::kGranted &&
         work.length <= rail_.caps().max_message_bytes && rail_.is_key(work.remote_key);
}

long Sender::post(std::span<const Work> works, size_t* taken) {
  size_t posted = 0;
  const bool may_hold_back = rail_.domain().traits().more;
  const auto lock = rail_.while_copying();
  for (; waiting_.empty() && posted < works.size(); ++posted) {
    const bool more =
        may_hold_back && posted + 1 < works.size() && (posted + 1) % kMostHeldBack != 0;
    const long code = write(works[posted], more);
    if (code == -FI_EAGAIN) break;
    if (code == 0) continue;
    window_.withhold_newest(posted);
    *taken = posted;
    return code;
  }
  waiting_.insert(waiting_.end(), works.begin() + static_cast<ptrdiff_t>(posted), works.end());
  *taken = works.size();
  return 0;
}

// The doorbell of works that were held back before is still to be rung, so none of these is held
// back.
long Sender::post_waiting() {
  const auto lock = rail_.while_copying();
  for (; !waiting_.empty(); waiting_.pop_front()) {
    const long code = write(waiting_.front(), false);
    if (code != 0) return code == -FI_EAGAIN ? 0 : code;
  }
  return 0;
}

long Sender::post_warm_up(fi_context2* context) {
  const FabricRail::Scratch& scratch = rail_.scratch();
  const fi_rma_iov target = {peer_.scratch_address + kWarmUpBytes, kWarmUpBytes, peer_.scratch_key};
  const auto lock = rail_.while_copying();
  return write({scratch.memory, kWarmUpBytes}, scratch.description, target, context, 0, 0);
}

// Works without bytes name a place all the same: some providers follow it (fi_rma(3)).
long Sender::write(const Work& work, bool more) {
  SLIME_CHECK(work.opcode == Opcode::kWriteWithImmediate);
  const FabricRail::Scratch& scratch = rail_.scratch();
  iovec piece = {scratch.memory, 0};
  fi_rma_iov target = {peer_.scratch_address, 0, peer_.scratch_key};
  void* description = scratch.description;
  if (work.length > 0) {
    const RegionTable::Pin pin(rail_.regions(), work.local_key,
                               reinterpret_cast<uint64_t>(work.local), work.length);
    if (pin.access() != RegionTable::Access::kGranted) return -FI_EINVAL;  // since it was taken
    piece = {const_cast<std::byte*>(work.local), work.length};
    target = {rail_.by_offset() ? work.remote_offset : work.remote_address, work.length,
              work.remote_key};
    description = reinterpret_cast<void*>(pin.handle());
  }
  const long code = write(piece, description, target, window_.add(work), work.immediate,
                          FI_REMOTE_CQ_DATA | (more ? FI_MORE : 0));
  if (code != 0) window_.forget_newest();
  return code;
}

long Sender::write(iovec piece, void* description, const fi_rma_iov& target, void* context,
                   uint64_t data, uint64_t flags) {
  fi_msg_rma message = message_of(piece, &description, target, peer_.address, context);
  message.data = data;
  const bool delivery = rail_.domain().traits().delivery_complete;
  flags |= FI_COMPLETION | (delivery ? FI_DELIVERY_COMPLETE : FI_TRANSMIT_COMPLETE);
  return ::fi_writemsg(endpoint_.get(), &message, flags);
}

}  // namespace slime::fabric
