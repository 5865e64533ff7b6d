// Eager messages at the receiver: taken by the receive they belong to, or kept until it is posted.
#include <algorithm>
#include <bit>

#include "engine/recv_comm.h"

namespace slime {

Status RecvCommImpl::on_eager(uint32_t immediate, uint64_t bytes) {
  const uint32_t index = widen(consumed_, immediate & kEagerIndexMask, kEagerIndexMask);
  const auto ahead = static_cast<int32_t>(index - consumed_);
  const uint32_t buffer = index % kEagerBuffers;
  const uint32_t bit = 1u << buffer;
  if (ahead < 0 || ((early_buffers_ | consumed_buffers_) & bit)) return Status::kOk;  // repeated
  EagerHeader& header = early_[buffer];
  std::memcpy(&header, inbox_.data() + buffer * eager_buffer_bytes(eager_max_), sizeof header);
  if (ahead >= static_cast<int32_t>(kEagerBuffers) || header.index != index ||
      header.length > eager_max_ || bytes != sizeof header + header.length) {
    return link_.fail_protocol("a malformed eager message");
  }
  early_buffers_ |= bit;
  on_seen(header.cts_seen);
  ReceiveRequest* request = nullptr;
  ReceivePart* part = nullptr;
  return find_receive(header, &request, &part) ? take(buffer, *request, *part) : Status::kOk;
}

bool RecvCommImpl::find_receive(const EagerHeader& header, ReceiveRequest** request,
                                ReceivePart** part) {
  for (ReceiveRequest& candidate : requests_) {
    if (!candidate.active || candidate.incomplete == 0) continue;
    for (uint32_t i = 0; i < candidate.count; ++i) {
      ReceivePart& wanted = candidate.parts[i];
      if (wanted.complete || wanted.tag != header.tag || wanted.ordinal != header.ordinal) continue;
      *request = &candidate;
      *part = &wanted;
      return true;
    }
  }
  return false;
}

bool RecvCommImpl::has_unexpected(int tag) {
  const Call call(*this);
  for (uint32_t left = early_buffers_; left; left &= left - 1) {
    if (early_[static_cast<size_t>(std::countr_zero(left))].tag == tag) return true;
  }
  return false;
}

// Whether these receives, posted now, would be complete at once.
bool RecvCommImpl::all_arrived(std::span<const Receive> receives) const {
  for (size_t i = 0; i < receives.size(); ++i) {
    const int tag = receives[i].tag;
    const auto same = std::count_if(receives.begin(), receives.begin() + static_cast<ptrdiff_t>(i),
                                    [tag](const Receive& other) { return other.tag == tag; });
    const uint32_t ordinal = posted_.peek(tag) + static_cast<uint32_t>(same);
    bool found = false;
    for (uint32_t left = early_buffers_; left && !found; left &= left - 1) {
      const EagerHeader& header = early_[static_cast<size_t>(std::countr_zero(left))];
      found = header.tag == tag && header.ordinal == ordinal;
    }
    if (!found) return false;
  }
  return true;
}

Status RecvCommImpl::take_early_messages(ReceiveRequest& request) {
  for (uint32_t i = 0; early_buffers_ != 0 && i < request.count; ++i) {
    ReceivePart& part = request.parts[i];
    for (uint32_t left = early_buffers_; left; left &= left - 1) {
      const auto buffer = static_cast<uint32_t>(std::countr_zero(left));
      if (early_[buffer].tag != part.tag || early_[buffer].ordinal != part.ordinal) continue;
      if (const Status status = take(buffer, request, part); status != Status::kOk) return status;
      break;
    }
  }
  return Status::kOk;
}

Status RecvCommImpl::take(uint32_t buffer, ReceiveRequest& request, ReceivePart& part) {
  const EagerHeader& header = early_[buffer];
  if (header.length > part.capacity) {
    return link_.fail(make_error(
        Status::kInvalid, 0,
        "a send of %u bytes (tag %d) meets a receive of %llu bytes; the ranks disagree on a size",
        header.length, header.tag, static_cast<unsigned long long>(part.capacity)));
  }
  if (header.length > 0) {
    const std::byte* payload =
        inbox_.data() + buffer * eager_buffer_bytes(eager_max_) + sizeof header;
    std::memcpy(part.data, payload, header.length);
  }
  part.bytes = header.length;
  complete(request, part);
  if (request.returned) retire_if_idle(request);
  ++eager_streak_;
  last_eager_ns_ = link_.now_ns();
  if (request.held && request.incomplete == 0) unhold(request);
  early_buffers_ &= ~(1u << buffer);
  consumed_buffers_ |= 1u << buffer;
  report_credits();
  return Status::kOk;
}

// Credits go back with each CTS; a stream of small messages that needs none reports for itself.
void RecvCommImpl::report_credits() {
  for (; consumed_buffers_ >> (consumed_ % kEagerBuffers) & 1; ++consumed_) {
    consumed_buffers_ &= ~(1u << (consumed_ % kEagerBuffers));
  }
  if (consumed_ - reported_ < kEagerBuffers / 2 || link_.status() != Status::kOk) return;
  reported_ = consumed_;
  link_.submit_control(ControlOp::kCredit, consumed_);
}

}  // namespace slime
