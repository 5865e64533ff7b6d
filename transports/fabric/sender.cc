#include "transports/fabric/sender.h"

#include <algorithm>
#include <utility>

#include "transports/fabric/rail.h"

namespace slime::fabric {
namespace {

constexpr size_t kScratchPiece = 8;  // bytes that a warm-up writes, or a read behind reads

// A write holds its doorbell back for the next write of its batch. A read may ring for it too, but
// no manual says so.
bool holds_back(std::span<const Work> works, size_t index) {
  return index + 1 < works.size() && (index + 1) % kMostHeldBack != 0 &&
         works[index + 1].opcode != Opcode::kRead;
}

template <typename Works>
size_t count_reads(const Works& works) {
  return static_cast<size_t>(std::ranges::count(works, Opcode::kRead, &Work::opcode));
}

}  // namespace

Sender::Sender(FabricRail& rail, const Endpoint& endpoint, const ChannelDepth& depth,
               bool confirmed)
    : rail_(rail),
      endpoint_(endpoint),
      writes_(depth.writes, confirmed),
      reads_(depth.reads, false) {}

size_t Sender::count_that_fit(std::span<const Work> works) const {
  const size_t reads = count_reads(waiting_);
  const size_t writes = waiting_.size() - reads;
  works = works.first(std::min<size_t>(works.size(), rail_.caps().max_batch));
  return slime::count_that_fit(works, writes_.room() - writes, reads_.room() - reads);
}

// Software providers compare the end of a write with that of the region, and let a wrap pass
// (libfabric's ofi_mr_map_verify); NICs do not.
bool Sender::is_valid(const Work& work) const {
  if ((rail_.caps().opcodes & opcode_bit(work.opcode)) == 0) return false;
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
    const long code = post_one(works[posted], may_hold_back && holds_back(works, posted));
    if (code == -FI_EAGAIN) break;
    if (code == 0) continue;
    const size_t reads = count_reads(works.first(posted));
    reads_.withhold_newest(reads);
    writes_.withhold_newest(posted - reads);
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
    const long code = post_one(waiting_.front(), false);
    if (code != 0) return code == -FI_EAGAIN ? 0 : code;
  }
  return 0;
}

fi_rma_iov Sender::scratch_of_peer() const {
  return {peer_.scratch_address + kScratchPiece, kScratchPiece, peer_.scratch_key};
}

long Sender::post_warm_up(fi_context2* context) {
  const FabricRail::Scratch& scratch = rail_.scratch();
  const auto lock = rail_.while_copying();
  return write({{scratch.memory, kScratchPiece}, scratch.description, scratch_of_peer(), context},
               0, 0);
}

long Sender::post_behind() {
  if (behind_ > 0 || writes_.unseen() == 0) return 0;
  const FabricRail::Scratch& scratch = rail_.scratch();
  const iovec here = {scratch.memory + 2 * kScratchPiece, kScratchPiece};
  const auto lock = rail_.while_copying();
  const long code = read({here, scratch.description, scratch_of_peer(), &behind_context_});
  if (code == 0) behind_ = writes_.unseen();
  return code == -FI_EAGAIN ? 0 : code;
}

bool Sender::complete(void* context) {
  if (context != &behind_context_) return writes_.complete(context) || reads_.complete(context);
  const size_t covered = std::exchange(behind_, 0);
  writes_.show(covered);
  return covered > 0;
}

void Sender::refuse(void* context, bool by_this_end) {
  if (!reads_.refuse(context) && !by_this_end) (void)writes_.refuse(context);
}

size_t Sender::take(std::span<Done> done) {
  const size_t count = writes_.take(done);
  return count + reads_.take(done.subspan(count));
}

// Works without bytes name a place all the same: some providers follow it (fi_rma(3)).
long Sender::post_one(const Work& work, bool more) {
  const FabricRail::Scratch& scratch = rail_.scratch();
  Request request = {{scratch.memory, 0},
                     scratch.description,
                     {peer_.scratch_address, 0, peer_.scratch_key},
                     nullptr};
  if (work.length > 0) {
    const RegionTable::Pin pin(rail_.regions(), work.local_key,
                               reinterpret_cast<uint64_t>(work.local), work.length);
    if (pin.access() != RegionTable::Access::kGranted) return -FI_EINVAL;  // since it was taken
    request.here = {const_cast<std::byte*>(work.local), work.length};
    request.there = {rail_.by_offset() ? work.remote_offset : work.remote_address, work.length,
                     work.remote_key};
    request.description = reinterpret_cast<void*>(pin.handle());
  }
  request.context = window_of(work).add(work);
  const uint64_t announced = work.opcode == Opcode::kWriteWithImmediate ? FI_REMOTE_CQ_DATA : 0;
  const long code = work.opcode == Opcode::kRead
                        ? read(request)
                        : write(request, work.immediate, announced | (more ? FI_MORE : 0));
  if (code != 0) window_of(work).forget_newest();
  return code;
}

long Sender::write(const Request& request, uint64_t data, uint64_t flags) {
  void* description = request.description;
  fi_msg_rma message =
      message_of(request.here, &description, request.there, peer_.address, request.context);
  message.data = data;
  const bool delivery = rail_.domain().traits().delivery_complete;
  flags |= FI_COMPLETION | (delivery ? FI_DELIVERY_COMPLETE : FI_TRANSMIT_COMPLETE);
  return ::fi_writemsg(endpoint_.get(), &message, flags);
}

long Sender::read(const Request& request) {
  void* description = request.description;
  const fi_msg_rma message =
      message_of(request.here, &description, request.there, peer_.address, request.context);
  return ::fi_readmsg(endpoint_.get(), &message, FI_COMPLETION);
}

}  // namespace slime::fabric
