#include "tools/perf/collective/link.h"

#include "tools/perf/collective/kernels.h"

namespace slime::perf {

void Link::begin_operations(const Geometry& geometry, uint64_t messages, uint32_t operations) {
  const auto protocol = static_cast<size_t>(geometry.protocol);
  geometry_ = geometry;
  depth_ = static_cast<uint32_t>(geometry.depth());
  slot_bytes_ = geometry.slot_bytes();
  fifo_ = memory_.fifo[protocol].data();
  fifo_handle_ = memory_.fifo_handle[protocol];
  messages_ = messages;
  operation_end_ = done_ + messages;
  end_ = done_ + messages * operations;
}

Activity Link::fail_with(const char* call, size_t bytes, Code code) {
  failure_ = std::string(call) + " of " + std::to_string(bytes) + " bytes, peer rank " +
             std::to_string(peer_) + ": " + result_name(code) + " (" + std::to_string(code) + ")";
  const std::string warning = last_warning();
  if (!warning.empty()) failure_ += "; plugin: " + warning;
  return Activity::kFailed;
}

void RecvLink::begin(const Geometry& geometry, std::span<const Step> steps, uint64_t messages,
                     uint32_t operations, const UserBuffers* users, const uint64_t* current) {
  begin_operations(geometry, messages, operations);
  steps_ = steps;
  users_ = users;
  current_ = current;
  post_step_ = 0;
  lines_ready_ = 0;
}

const Step& RecvLink::next_receive() {
  while (steps_[post_step_ % steps_.size()].receive_into == Place::kNowhere) ++post_step_;
  return steps_[post_step_ % steps_.size()];
}

Activity RecvLink::post() {
  const Step& step = next_receive();
  Slot& next = slot(posted_);
  if (step.receive_into == Place::kOutput) {
    const uint64_t operation = post_step_ / steps_.size();
    if (operation > *current_) return Activity::kIdle;
    next.data = users_->output_of(operation) + step.output_offset;
    next.bytes = step.bytes;
    next.handle = memory_.receive_buffer_handle;
  } else {
    next.data = fifo(posted_);
    next.bytes = slot_bytes_;
    next.handle = fifo_handle_;
  }
  next.expected = message_bytes(geometry_.protocol, step.bytes);
  // LL kernels look at the flags in memory, so NCCL does not need these completions
  // (NCCL_NET_OPTIONAL_RECV_COMPLETION).
  next.request = completion_is_optional()
                     ? reinterpret_cast<void*>(nccl::kOptionalReceiveCompletion)
                     : nullptr;
  const auto code = net_->irecv(comm_, next.data, next.bytes, tag_, next.handle, &next.request);
  if (code != nccl::kSuccess) return fail_with("irecv", next.bytes, code);
  if (next.request == nullptr) return Activity::kIdle;
  ++posted_;
  ++post_step_;
  return Activity::kMoved;
}

Activity RecvLink::test_oldest() {
  Slot& oldest = slot(received_);
  int done = 0;
  int sizes[64];  // NCCL offers room for 64 receives in one request
  sizes[0] = 0;
  const auto code = net_->test(oldest.request, &done, sizes);
  if (code != nccl::kSuccess) return fail_with("test of a receive", oldest.bytes, code);
  if (done == 0) return Activity::kIdle;
  if (!completion_is_optional() && static_cast<size_t>(sizes[0]) != oldest.expected) {
    failure_ = "a receive from rank " + std::to_string(peer_) + " is said to have brought " +
               std::to_string(sizes[0]) + " bytes where " + std::to_string(oldest.expected) +
               " were sent";
    return Activity::kFailed;
  }
  ++received_;
  retire();
  return Activity::kMoved;
}

bool RecvLink::ready(size_t bytes) {
  if (geometry_.protocol == Protocol::kSimple) return consumed_ < received_;
  if (consumed_ == posted_) return false;  // its slot is not the network's yet
  const size_t lines = geometry_.protocol == Protocol::kLl
                           ? (bytes + kLlLineData - 1) / kLlLineData
                           : (bytes + kLl128LineData - 1) / kLl128LineData;
  const char* data = slot_data();
  const size_t left = lines - lines_ready_;
  lines_ready_ +=
      geometry_.protocol == Protocol::kLl
          ? kernels().ready_ll(data + lines_ready_ * kLlLineBytes, left,
                               static_cast<uint32_t>(consumed_ + 1))
          : kernels().ready_ll128(data + lines_ready_ * kLl128LineBytes, left, consumed_ + 1);
  return lines_ready_ == lines;
}

}  // namespace slime::perf
