#include "tools/perf/collective/coll_communicator.h"

#include <sched.h>

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "tools/perf/collective/kernels.h"
#include "tools/perf/plugin/plugin.h"

namespace slime::perf {
namespace {

// Between two pieces of a long copy the proxy gets its turn.
constexpr size_t kPieceBytes = 256 << 10;

}  // namespace

CollRunner::CollRunner(Job* job, const CollPath& path, const std::atomic<bool>* stop, Pulse* pulse)
    : job_(job),
      path_(path),
      stop_(stop),
      pulse_(pulse),
      element_bytes_(size_of(job->type)),
      bytes_(job->shape.count * element_bytes_),
      requests_(path.plan.depth) {
  job_->end_ns.clear();
  job_->end_ns.reserve(job_->operations);
}

Result<void> CollRunner::run() {
  job_->start_ns = SteadyClock::instance().now_ns();
  end_operations();  // empty ones
  while (operation_ < job_->operations) {
    const auto moved = visit();
    if (!moved) return fail(moved.error());
    if (*moved) {
      pulse_->beat();
      end_operations();
    } else {
      sched_yield();  // as NCCL's progress thread does when it is idle (src/proxy.cc)
    }
    if (stop_->load(std::memory_order_relaxed)) {
      return fail(Error{Status::kRemote, 0, ""});  // the verdict says why
    }
  }
  return {};
}

Result<bool> CollRunner::visit() {
  bool moved = copy_in();
  const auto issued = issue();
  if (!issued) return issued;
  const auto tested = test();
  if (!tested) return tested;
  moved |= copy_out();
  return moved || *issued || *tested;
}

void CollRunner::end_operations() {
  while (operation_ < job_->operations && copied_out_ == path_.plan.calls) {
    job_->end_ns.push_back(SteadyClock::instance().now_ns());
    ++operation_;
    first_call_ += path_.plan.calls;
    copied_in_ = issued_ = done_ = copied_out_ = 0;
  }
}

size_t CollRunner::bytes_of(uint64_t index) const {
  return std::min(path_.plan.call_bytes, bytes_ - index * path_.plan.call_bytes);
}

bool CollRunner::copy_in() {
  if (copied_in_ == path_.plan.calls || copied_in_ == copied_out_ + path_.plan.depth) return false;
  if (path_.direct) {
    ++copied_in_;
    return true;
  }
  const size_t call_bytes = path_.plan.call_bytes;
  const size_t whole = bytes_of(copied_in_);
  const size_t piece = std::min(kPieceBytes, whole - in_bytes_);
  const char* user = job_->users.input_of(operation_) + copied_in_ * call_bytes;
  // The rest of the slot keeps what was there, as in NCCL.
  std::memcpy(path_.send_fifo + slot(copied_in_) * call_bytes + in_bytes_, user + in_bytes_, piece);
  in_bytes_ += piece;
  if (in_bytes_ < whole) return true;
  in_bytes_ = 0;
  ++copied_in_;
  return true;
}

CollCall CollRunner::call(uint64_t index) const {
  CollCall call;
  call.type = job_->type;
  call.op = job_->op == RedOp::kAvg ? RedOp::kSum : job_->op;
  call.send_handle = path_.send_handle;
  call.receive_handle = path_.receive_handle;
  const size_t call_bytes = path_.plan.call_bytes;
  if (path_.direct) {
    call.send = job_->users.input_of(operation_) + index * call_bytes;
    call.receive = job_->users.output_of(operation_) + index * call_bytes;
    call.count = bytes_of(index) / element_bytes_;
  } else {
    call.send = path_.send_fifo + slot(index) * call_bytes;
    call.receive = path_.receive_fifo + slot(index) * call_bytes;
    call.count = call_bytes / element_bytes_;
  }
  return call;
}

Result<bool> CollRunner::issue() {
  if (issued_ == copied_in_) return false;
  const CollCall next = call(issued_);
  void* request = nullptr;
  const auto code = path_.api->iallreduce(path_.comm, next, &request);
  if (code != nccl::kSuccess) {
    return fail(call_error(Status::kRemote,
                           "iallreduce of " + std::to_string(next.count) + " " +
                               std::string(name_of(next.type)) + " by " +
                               std::string(name_of(next.op)),
                           code));
  }
  if (request == nullptr) return false;  // the same one again, later
  requests_[slot(issued_)] = request;
  ++issued_;
  return true;
}

Result<bool> CollRunner::test() {
  if (done_ == issued_) return false;
  int done = 0, size = 0;
  const auto code = path_.api->test(requests_[slot(done_)], &done, &size);
  if (code != nccl::kSuccess) {
    return fail(call_error(Status::kRemote, "test of an iallreduce", code));
  }
  if (done == 0) return false;
  ++done_;
  return true;
}

bool CollRunner::copy_out() {
  if (copied_out_ == done_) return false;
  if (path_.direct) {
    ++copied_out_;
    return true;
  }
  const size_t call_bytes = path_.plan.call_bytes;
  const size_t whole = bytes_of(copied_out_);
  const size_t piece = std::min(kPieceBytes, whole - out_bytes_);
  char* user = job_->users.output_of(operation_) + copied_out_ * call_bytes;
  store(user + out_bytes_, path_.receive_fifo + slot(copied_out_) * call_bytes + out_bytes_, piece);
  out_bytes_ += piece;
  if (out_bytes_ < whole) return true;
  out_bytes_ = 0;
  ++copied_out_;
  return true;
}

// A network sees averages as sums: the kernel divides.
void CollRunner::store(char* to, const char* from, size_t bytes) const {
  if (job_->op != RedOp::kAvg) {
    std::memcpy(to, from, bytes);
    return;
  }
  alignas(64) static constexpr char kZeros[8192] = {};
  const auto divide = kernels().sum_and_divide[static_cast<size_t>(job_->type)];
  for (size_t offset = 0; offset < bytes; offset += sizeof kZeros) {
    const size_t piece = std::min(sizeof kZeros, bytes - offset);
    divide(to + offset, nullptr, from + offset, kZeros, piece / element_bytes_,
           static_cast<uint32_t>(job_->shape.ranks));
  }
}

}  // namespace slime::perf
