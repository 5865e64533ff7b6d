#include "tools/perf/collective/runner.h"

#include <sched.h>

#include <algorithm>
#include <cstring>

#include "base/clock.h"

namespace slime::perf {
namespace {

// Between two pieces of a long reduction or copy the proxies get their turn.
constexpr size_t kPieceBytes = 256 << 10;

// Payload of LL lines that is worked on at a time: stays in the first-level cache.
size_t lines_piece(Protocol protocol) {
  return protocol == Protocol::kLl ? 8192 : 64 * kLl128LineData;
}

}  // namespace

Runner::Runner(Job* job, std::span<const Lane> lanes, const std::atomic<bool>* stop, Pulse* pulse)
    : job_(job),
      stop_(stop),
      pulse_(pulse),
      functions_(kernels()),
      element_bytes_(size_of(job->type)) {
  for (const Lane& lane : lanes) prepare(lane);
  job_->end_ns.clear();
  job_->end_ns.reserve(job_->operations);
}

void Runner::prepare(const Lane& lane) {
  const Flow& flow = *lane.flow;
  Kernel kernel{lane};
  uint64_t sends = 0, receives = 0;
  for (const Step& step : flow.steps) {
    sends += step.send_from != Place::kNowhere;
    receives += step.receive_into != Place::kNowhere;
    kernel.sends_user_memory |= step.send_from == Place::kInput || step.send_from == Place::kOutput;
  }
  if (kernel.send != nullptr) kernel.send->begin(flow.geometry, sends, job_->operations);
  if (kernel.recv != nullptr) {
    kernel.recv->begin(flow.geometry, flow.steps, receives, job_->operations, &job_->users,
                       &operation_);
  }
  last_batch_ = std::max(last_batch_, flow.batch);
  kernels_.push_back(kernel);
}

Result<void> Runner::run() {
  job_->start_ns = SteadyClock::instance().now_ns();
  batch_ = -1;
  unfinished_ = 0;
  input_ = job_->users.input_of(0);
  output_ = job_->users.output_of(0);
  end_batch();
  while (operation_ < job_->operations || !drained()) {
    bool moved = false;
    for (Kernel& kernel : kernels_) {
      const Activity received = kernel.recv != nullptr ? kernel.recv->visit() : Activity::kIdle;
      const Activity advanced = advance(&kernel);
      const Activity sent = kernel.send != nullptr ? kernel.send->visit() : Activity::kIdle;
      if (received == Activity::kFailed || sent == Activity::kFailed) {
        return fail(failure_of(kernel));
      }
      moved |=
          received == Activity::kMoved || advanced == Activity::kMoved || sent == Activity::kMoved;
    }
    if (moved) {
      pulse_->beat();
    } else {
      sched_yield();  // as NCCL's progress thread does when it is idle (src/proxy.cc)
    }
    if (stop_->load(std::memory_order_relaxed)) {
      return fail(Error{Status::kRemote, 0, ""});  // the verdict says why
    }
  }
  return {};
}

bool Runner::drained() const {
  return std::all_of(kernels_.begin(), kernels_.end(), [](const Kernel& kernel) {
    return (kernel.send == nullptr || kernel.send->all_done()) &&
           (kernel.recv == nullptr || kernel.recv->all_done());
  });
}

Activity Runner::advance(Kernel* kernel) {
  if (kernel->flow->batch != batch_ || operation_ == job_->operations) return Activity::kIdle;
  if (kernel->step == kernel->flow->steps.size()) {
    if (!kernel->leaving || !kernel->send->nothing_in_flight()) return Activity::kIdle;
    kernel->leaving = false;
    end_kernel();
    return Activity::kMoved;
  }
  const Step& step = kernel->flow->steps[kernel->step];
  if (kernel->done_bytes == 0) {
    if (step.receive_into != Place::kNowhere && !kernel->recv->ready(step.bytes)) {
      return Activity::kIdle;
    }
    if (step.send_from != Place::kNowhere && !kernel->send->can_fill()) return Activity::kIdle;
    if (step.send_from == Place::kInput) hand_on(kernel, step);  // nothing to wait for
  }
  if (kernel->flow->geometry.protocol == Protocol::kSimple) {
    work_simple(kernel, step);
    if (kernel->done_bytes < step.bytes) return Activity::kMoved;
  } else {
    work_lines(kernel, step);
  }
  finish_step(kernel, step);
  return Activity::kMoved;
}

// Gives the step's message to the proxy.
void Runner::hand_on(Kernel* kernel, const Step& step) {
  SendLink* send = kernel->send;
  const LinkMemory& memory = send->memory();
  if (step.send_from == Place::kFifo) {
    send->fill_fifo(message_bytes(kernel->flow->geometry.protocol, step.bytes));
  } else if (step.send_from == Place::kInput) {
    send->fill(input_ + step.input_offset, step.bytes,
               job_->users.in_place ? memory.receive_buffer_handle : memory.send_buffer_handle);
  } else {
    send->fill(output_ + step.output_offset, step.bytes, memory.receive_buffer_handle);
  }
}

void Runner::finish_step(Kernel* kernel, const Step& step) {
  if (step.receive_into != Place::kNowhere) kernel->recv->consume();
  if (step.send_from == Place::kFifo || step.send_from == Place::kOutput) hand_on(kernel, step);
  kernel->done_bytes = 0;
  if (++kernel->step < kernel->flow->steps.size()) return;
  // The kernel ends when it has handed on its last message; where messages leave from the user's
  // memory, which the user may change then, when the last of them has left.
  kernel->leaving = kernel->sends_user_memory;
  if (!kernel->leaving) end_kernel();
}

void Runner::end_kernel() {
  if (--unfinished_ == 0) end_batch();
}

// Starts the next batch that has kernels with work; after the last one, the next operation.
void Runner::end_batch() {
  while (operation_ < job_->operations) {
    if (batch_ == last_batch_) {
      job_->end_ns.push_back(SteadyClock::instance().now_ns());
      ++operation_;
      input_ = job_->users.input_of(operation_);
      output_ = job_->users.output_of(operation_);
      batch_ = -1;
      for (Kernel& kernel : kernels_) kernel.step = 0;
      continue;
    }
    ++batch_;
    unfinished_ = static_cast<size_t>(
        std::count_if(kernels_.begin(), kernels_.end(), [this](const Kernel& kernel) {
          return kernel.flow->batch == batch_ && !kernel.flow->steps.empty();
        }));
    if (unfinished_ > 0) return;
  }
}

void Runner::combine(const Step& step, void* out, void* out2, const void* received, const void* own,
                     size_t bytes) const {
  const auto type = static_cast<size_t>(job_->type);
  const size_t count = bytes / element_bytes_;
  if (step.divide && job_->op == RedOp::kAvg) {
    return functions_.sum_and_divide[type](out, out2, received, own, count,
                                           static_cast<uint32_t>(job_->shape.ranks));
  }
  const size_t op = job_->op == RedOp::kAvg ? 0 : static_cast<size_t>(job_->op);
  functions_.reduce[type][op](out, out2, received, own, count, 0);
}

// One piece of the step's work: from the FIFO or the input to the output, the next FIFO, or both.
void Runner::work_simple(Kernel* kernel, const Step& step) {
  const size_t from = kernel->done_bytes;
  const size_t bytes = std::min<size_t>(kPieceBytes, step.bytes - from);
  kernel->done_bytes += bytes;
  char* output = step.store ? output_ + step.output_offset + from : nullptr;
  char* next = step.send_from == Place::kFifo ? kernel->send->slot_data() + from : nullptr;
  const char* input = input_ + step.input_offset + from;
  const char* source = step.receive_into == Place::kFifo ? kernel->recv->slot_data() + from : input;
  if (bytes == 0 || (output == nullptr && next == nullptr)) {
    kernel->done_bytes = step.bytes;
    return;
  }
  if (step.reduce) {
    return combine(step, output != nullptr ? output : next, output != nullptr ? next : nullptr,
                   source, input, bytes);
  }
  if (output != nullptr) std::memcpy(output, source, bytes);
  if (next != nullptr) std::memcpy(next, source, bytes);
}

// All lines of a step: unpacked, combined, stored, packed, a small piece at a time.
void Runner::work_lines(Kernel* kernel, const Step& step) {
  const bool ll = kernel->flow->geometry.protocol == Protocol::kLl;
  const size_t piece = lines_piece(kernel->flow->geometry.protocol);
  const size_t line_data = ll ? kLlLineData : kLl128LineData;
  const size_t line_bytes = ll ? kLlLineBytes : kLl128LineBytes;
  for (size_t from = 0; from < step.bytes; from += piece) {
    const size_t bytes = std::min<size_t>(piece, step.bytes - from);
    const size_t lines_offset = from / line_data * line_bytes;
    const char* source = input_ + step.input_offset + from;
    char* output = step.store ? output_ + step.output_offset + from : nullptr;
    if (step.receive_into != Place::kNowhere) {
      (ll ? functions_.unpack_ll : functions_.unpack_ll128)(
          received_, kernel->recv->slot_data() + lines_offset, bytes);
      if (step.reduce) combine(step, result_, nullptr, received_, source, bytes);
      source = step.reduce ? result_ : received_;
    }
    if (output != nullptr) std::memcpy(output, source, bytes);
    if (step.send_from == Place::kNowhere) continue;
    char* lines = kernel->send->slot_data() + lines_offset;
    if (ll) {
      functions_.pack_ll(lines, source, bytes, static_cast<uint32_t>(kernel->send->filled() + 1));
    } else {
      functions_.pack_ll128(lines, source, bytes, kernel->send->filled() + 1);
    }
  }
}

Error Runner::failure_of(const Kernel& kernel) const {
  const bool receive = kernel.recv != nullptr && !kernel.recv->failure().empty();
  const std::string& text = receive ? kernel.recv->failure() : kernel.send->failure();
  return Error{Status::kRemote, 0, text};
}

}  // namespace slime::perf
