#include "tools/perf/collective/link.h"

#include <algorithm>

#include "tools/perf/collective/kernels.h"

namespace slime::perf {

void Link::begin(const Flow& flow, const Job& job, const uint64_t* current) {
  const auto protocol = static_cast<size_t>(flow.geometry.protocol);
  flow_ = &flow;
  job_ = &job;
  current_ = current;
  geometry_ = flow.geometry;
  slots_.assign(geometry_.depth, {});
  send_fifo_ = memory.send_fifo[protocol];
  receive_fifo_ = memory.receive_fifo[protocol];
  post_step_ = 0;
  lines_ready_ = 0;
  messages_ = static_cast<uint64_t>(
      std::count_if(flow.steps.begin(), flow.steps.end(), [this](const Step& step) {
        return (is_filled() ? step.send_from : step.receive_into) != Place::kNowhere;
      }));
  end_of_operation_ = done_ + messages_;
  end_of_job_ = done_ + messages_ * job.operations;
}

Memory Link::place_of(Place place, const Step& step, uint64_t operation, const Memory& fifo,
                      uint64_t message) const {
  const UserBuffers& users = job_->users;
  if (place == Place::kFifo) return {slot_in(fifo, message), fifo.handle};
  if (place == Place::kOutput) {
    return {users.output_of(operation) + step.output_offset, memory.receive_buffer_handle};
  }
  return {users.input_of(operation) + step.input_offset,
          job_->shape.in_place ? memory.receive_buffer_handle : memory.send_buffer_handle};
}

// A network that reduces takes whole slots of a FIFO.
void Link::fill(const Step& step) {
  const bool fifo = step.send_from == Place::kFifo;
  Slot& next = slot(filled_);
  next.from = place_of(step.send_from, step, *current_, send_fifo_, filled_);
  next.to = place_of(fifo ? Place::kFifo : Place::kOutput, step, *current_, receive_fifo_, filled_);
  next.bytes = fifo && end_.kind == Endpoint::kReduce
                   ? geometry_.slot_bytes
                   : message_bytes(geometry_.protocol, step.bytes);
  ++filled_;
}

// False: it is for a later operation's kernel.
bool Link::place_receive(Slot* slot) {
  const std::vector<Step>& steps = flow_->steps;
  while (steps[post_step_ % steps.size()].receive_into == Place::kNowhere) ++post_step_;
  const Step& step = steps[post_step_ % steps.size()];
  const uint64_t operation = post_step_ / steps.size();
  const bool to_user = step.receive_into == Place::kOutput;
  if (to_user && operation > *current_) return false;
  slot->to = place_of(step.receive_into, step, operation, receive_fifo_, posted_);
  slot->bytes = to_user ? step.bytes : geometry_.slot_bytes;
  if (completion_is_optional()) return true;
  slot->expected = static_cast<int64_t>(message_bytes(geometry_.protocol, step.bytes));
  return true;
}

Code Link::start(Slot* slot) {
  const Memory &from = slot->from, &to = slot->to;
  void** const request = &slot->request;
  *request = nullptr;
  if (end_.kind == Endpoint::kSend) {
    return end_.net->isend(end_.comm, from.data, slot->bytes, end_.tag, from.handle, &no_profile_,
                           request);
  }
  if (end_.kind == Endpoint::kReceive) {
    // LL kernels look at the flags in memory, so NCCL does not need these completions
    // (NCCL_NET_OPTIONAL_RECV_COMPLETION).
    const uintptr_t optional = completion_is_optional() ? nccl::kOptionalReceiveCompletion : 0;
    *request = reinterpret_cast<void*>(optional);
    void *data = to.data, *handle = to.handle, *profile = &no_profile_;
    int tag = end_.tag;
    return end_.net->irecv(end_.comm, 1, &data, &slot->bytes, &tag, &handle, &profile, request);
  }
  const DataType type = job_->shape.type;
  return end_.coll->iallreduce(end_.comm, from.data, to.data, slot->bytes / size_of(type), type,
                               nccl_op(job_->shape.op), from.handle, to.handle, request);
}

std::string Link::what(const Slot& slot, bool is_test) const {
  if (end_.kind == Endpoint::kReduce) {
    const DataType type = job_->shape.type;
    if (is_test) return "test of an iallreduce";
    return "iallreduce of " + std::to_string(slot.bytes / size_of(type)) + " " + name_of(type) +
           " by " + name_of(network_op(job_->shape.op));
  }
  static constexpr const char* kCalls[2][2] = {{"isend", "test of a send"},
                                               {"irecv", "test of a receive"}};
  return std::string(kCalls[end_.kind][is_test ? 1 : 0]) + " of " + std::to_string(slot.bytes) +
         " bytes, peer rank " + std::to_string(end_.peer);
}

Activity Link::visit() {
  const uint64_t most = is_filled() ? filled_ : done_ + geometry_.depth;
  if (posted_ < std::min(most, end_of_operation_)) {
    const Activity activity = post();
    if (activity != Activity::kIdle) return activity;
  }
  return completed_ < posted_ ? test_oldest() : Activity::kIdle;
}

Activity Link::post() {
  Slot& next = slot(posted_);
  if (!is_filled() && !place_receive(&next)) return Activity::kIdle;
  if (const Code code = start(&next); code != nccl::kSuccess) {
    failure_ = what(next, false) + ": " + outcome_of(code);
    return Activity::kFailed;
  }
  if (next.request == nullptr) return Activity::kIdle;  // the same one again, later
  ++posted_;
  ++post_step_;
  return Activity::kMoved;
}

Activity Link::test_oldest() {
  const Slot& oldest = slot(completed_);
  int done = 0;
  int sizes[64];  // NCCL offers room for 64 receives in one request
  sizes[0] = 0;
  const Code code = end_.kind == Endpoint::kReduce ? end_.coll->test(oldest.request, &done, sizes)
                                                   : end_.net->test(oldest.request, &done, sizes);
  if (code != nccl::kSuccess) {
    failure_ = what(oldest, true) + ": " + outcome_of(code);
    return Activity::kFailed;
  }
  if (done == 0) return Activity::kIdle;
  if (oldest.expected >= 0 && sizes[0] != oldest.expected) {
    failure_ = "a receive from rank " + std::to_string(end_.peer) + " is said to have brought " +
               std::to_string(sizes[0]) + " bytes where " + std::to_string(oldest.expected) +
               " were sent";
    return Activity::kFailed;
  }
  ++completed_;
  retire();
  return Activity::kMoved;
}

bool Link::ready(size_t bytes) {
  if (geometry_.protocol == Protocol::kSimple) return consumed_ < completed_;
  if (consumed_ == posted_) return false;  // its slot is not the network's yet
  const Line line = line_of(geometry_.protocol);
  const size_t lines = div_up(bytes, line.data);
  const char* const next = slot_to_consume() + lines_ready_ * line.bytes;
  lines_ready_ += ready_lines(geometry_.protocol, next, lines - lines_ready_, consumed_ + 1);
  return lines_ready_ == lines;
}

void Link::consume() {
  ++consumed_;
  lines_ready_ = 0;
  retire();
}

// A slot is free when the message has arrived and the kernel has read it. (LL kernels read it
// before the network says that it has arrived.)
void Link::retire() {
  const bool sends = end_.kind == Endpoint::kSend;
  const uint64_t free = sends ? completed_ : std::min(consumed_, completed_);
  while (done_ < free) {
    if (end_.kind == Endpoint::kReceive) {
      end_.net->irecv_consumed(end_.comm, 1, slot(done_).request);
    }
    ++done_;
    // All messages of one operation are done: the next may begin.
    if (done_ == end_of_operation_ && done_ < end_of_job_) end_of_operation_ += messages_;
  }
}

}  // namespace slime::perf
