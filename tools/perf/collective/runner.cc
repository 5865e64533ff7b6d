// Runs operations on the progress thread: NCCL's proxy (link.h), and between its visits the work
// that GPU kernels do. One thread does both, so that a rank needs one core.
#include <sched.h>

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "tools/perf/collective/kernels.h"
#include "tools/perf/collective/link.h"

namespace slime::perf {
namespace {

// Between two pieces of a long reduction or copy the proxies get their turn.
constexpr size_t kPieceBytes = 256 << 10;
// What is worked on at a time: whole lines of both protocols, in the first-level cache.
constexpr size_t kBlockBytes = 64 * 120;

// States of an operation: its kernels run, batch after batch; it ends when all have handed on their
// last message, and the next begins at once. The run ends when the messages of all are done too.
// Invariant: a kernel reads a FIFO slot after the message was received and before the slot is
// retired, and writes a slot after its last message is done (the counters of Link). Thread: the
// progress thread.
class Runner {
 public:
  Runner(Job* job, std::span<const Lane> lanes, const std::atomic<bool>& stop, Heartbeat* heartbeat)
      : job_(job),
        stop_(stop),
        heartbeat_(heartbeat),
        reduce_(reductions().best().of[static_cast<size_t>(job->shape.type)]) {
    for (const Lane& lane : lanes) {
      const Flow& flow = *lane.flow;
      Kernel kernel{lane};
      kernel.sends_user_memory =
          std::any_of(flow.steps.begin(), flow.steps.end(), [](const Step& step) {
            return step.send_from == Place::kInput || step.send_from == Place::kOutput;
          });
      if (lane.send != nullptr) lane.send->begin(flow, *job, &operation_);
      // CollNet's link is the sending one of the flow in too, and has begun with that.
      if (lane.recv != nullptr && lane.recv != lane.send &&
          lane.recv->end().kind == Endpoint::kReceive)
        lane.recv->begin(flow, *job, &operation_);
      last_batch_ = std::max(last_batch_, flow.batch);
      kernels_.push_back(kernel);
    }
    job_->end_ns.clear();
    job_->end_ns.reserve(job_->operations);
  }

  Result<void> run() {
    job_->start_ns = steady_now_ns();
    input_ = job_->users.input_of(0);
    output_ = job_->users.output_of(0);
    end_batch();
    while (operation_ < job_->operations || !drained()) {
      bool moved = false;
      for (Kernel& kernel : kernels_) {
        const auto visit = [&](Link* link) -> Result<void> {
          const Activity activity = link != nullptr ? link->visit() : Activity::kIdle;
          moved |= activity == Activity::kMoved;
          if (activity != Activity::kFailed) return {};
          return fail({Status::kRemote, 0, link->failure()});
        };
        if (auto received = visit(kernel.recv); !received) return received;
        moved |= advance(&kernel) == Activity::kMoved;
        if (auto sent = visit(kernel.send); !sent) return sent;
      }
      if (moved) {
        heartbeat_->beat();
      } else {
        sched_yield();  // as NCCL's progress thread does when it is idle (src/proxy.cc)
      }
      if (stop_.load(std::memory_order_relaxed)) {
        return fail({Status::kRemote, 0, ""});  // the verdict says why
      }
    }
    return {};
  }

 private:
  struct Kernel : Lane {
    bool sends_user_memory = false;
    size_t step = 0;
    size_t done_bytes = 0;  // of the step
    bool leaving = false;   // all steps done, and messages still leave the user's memory
  };

  bool drained() const {
    return std::all_of(kernels_.begin(), kernels_.end(), [](const Kernel& kernel) {
      return (kernel.send == nullptr || kernel.send->all_done()) &&
             (kernel.recv == nullptr || kernel.recv->all_done());
    });
  }

  Activity advance(Kernel* kernel) {
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
      if (step.send_from == Place::kInput) kernel->send->fill(step);  // nothing to wait for
    }
    work(kernel, step);
    if (kernel->done_bytes == step.bytes) finish_step(kernel, step);
    return Activity::kMoved;
  }

  void finish_step(Kernel* kernel, const Step& step) {
    if (step.receive_into != Place::kNowhere) kernel->recv->consume();
    if (step.send_from == Place::kFifo || step.send_from == Place::kOutput)
      kernel->send->fill(step);
    kernel->done_bytes = 0;
    if (++kernel->step < kernel->flow->steps.size()) return;
    // A kernel ends when it has handed on its last message. Where messages are sent from the user's
    // memory, it ends when the last of them has left, because the user may change the memory then.
    kernel->leaving = kernel->sends_user_memory;
    if (!kernel->leaving) end_kernel();
  }

  void end_kernel() {
    if (--unfinished_ == 0) end_batch();
  }

  // Starts the next batch that has kernels with work; after the last one, the next operation.
  void end_batch() {
    while (operation_ < job_->operations) {
      if (batch_ == last_batch_) {
        job_->end_ns.push_back(steady_now_ns());
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

  // CollNet has added what came in for an average. It is divided only, so zeros are added to it.
  const char* combine(const Step& step, char* out, const char* received, const char* own,
                      size_t bytes) const {
    alignas(64) static constexpr char kZeros[kBlockBytes] = {};
    const RedOp op = job_->shape.op == RedOp::kAvg && !step.divide ? RedOp::kSum : job_->shape.op;
    reduce_({op, out, received, step.reduce ? own : kZeros, bytes / size_of(job_->shape.type),
             static_cast<uint32_t>(job_->shape.ranks)});
    return out;
  }

  // One piece of the step's work, block by block: from the FIFO or the input, reduced, to the
  // output, the next FIFO, or both.
  void work(Kernel* kernel, const Step& step) {
    const Protocol protocol = kernel->flow->geometry.protocol;
    const bool simple = protocol == Protocol::kSimple;
    const bool to_fifo = step.send_from == Place::kFifo;
    const bool combines = step.reduce || step.divide;
    if (!step.store && !to_fifo) kernel->done_bytes = step.bytes;
    const Line line = line_of(protocol);
    const size_t block = simple && !combines ? kPieceBytes : kBlockBytes;
    const size_t end =
        simple ? std::min<size_t>(kernel->done_bytes + kPieceBytes, step.bytes) : step.bytes;
    for (size_t& from = kernel->done_bytes; from < end;) {
      const size_t bytes = std::min(block, end - from);
      const size_t offset = from / line.data * line.bytes;  // in a slot
      const char* const own = input_ + step.input_offset + from;
      char* const output = step.store ? output_ + step.output_offset + from : nullptr;
      char* const next = to_fifo ? kernel->send->slot_to_fill() + offset : nullptr;
      const char* source = own;
      if (step.receive_into == Place::kFifo) {
        source = kernel->recv->slot_to_consume() + offset;
        if (!simple) unpack(protocol, received_, source, bytes);
        if (!simple) source = received_;
      }
      if (combines) {
        char* const direct = simple ? next : result_;
        source = combine(step, output != nullptr ? output : direct, source, own, bytes);
      } else if (output != nullptr) {
        std::memcpy(output, source, bytes);
      }
      if (next != nullptr && source != next) {
        pack(protocol, next, source, bytes, kernel->send->flag());
      }
      from += bytes;
    }
  }

  Job* const job_;
  const std::atomic<bool>& stop_;
  Heartbeat* const heartbeat_;
  void (*const reduce_)(const Operands&);
  std::vector<Kernel> kernels_;
  uint64_t operation_ = 0;
  int batch_ = -1, last_batch_ = 0;
  size_t unfinished_ = 0;                      // kernels of this batch
  char *input_ = nullptr, *output_ = nullptr;  // of this operation
  alignas(64) char received_[kBlockBytes], result_[kBlockBytes];
};

}  // namespace

Result<void> run_job(Job* job, std::span<const Lane> lanes, const std::atomic<bool>& stop,
                     Heartbeat* heartbeat) {
  return Runner(job, lanes, stop, heartbeat).run();
}

}  // namespace slime::perf
