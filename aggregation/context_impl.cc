// What is behind the public calls: checks, and how a thread waits for an operation.
#include "aggregation/context_impl.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>

#include "base/clock.h"

namespace slime::aggregation {
namespace {

// The public enumerations are in the order of the workers'.
constexpr slime::DataType type_of(DataType type) { return static_cast<slime::DataType>(type); }
constexpr ReduceOp op_of(Op op) { return static_cast<ReduceOp>(op); }
static_assert(type_of(DataType::kInt8) == slime::DataType::kInt8 &&
              type_of(DataType::kUint8) == slime::DataType::kUint8 &&
              type_of(DataType::kInt32) == slime::DataType::kInt32 &&
              type_of(DataType::kUint32) == slime::DataType::kUint32 &&
              type_of(DataType::kInt64) == slime::DataType::kInt64 &&
              type_of(DataType::kUint64) == slime::DataType::kUint64 &&
              type_of(DataType::kFloat16) == slime::DataType::kFloat16 &&
              type_of(DataType::kFloat32) == slime::DataType::kFloat32 &&
              type_of(DataType::kBfloat16) == slime::DataType::kBfloat16);
static_assert(op_of(Op::kSum) == ReduceOp::kSum && op_of(Op::kMin) == ReduceOp::kMin &&
              op_of(Op::kMax) == ReduceOp::kMax);
static_assert(Context::kMaxOutstanding == Worker::kMaxOperations);

bool overlap_partly(const Reduction& reduction, size_t bytes) {
  const auto send = reinterpret_cast<uintptr_t>(reduction.send);
  const auto receive = reinterpret_cast<uintptr_t>(reduction.receive);
  const uintptr_t apart = send > receive ? send - receive : receive - send;
  return apart != 0 && apart < bytes;
}

// How a thread waits for an operation: it yields while results come, and sleeps once none have come
// for kYieldNs. since_ns_ is when results_ last changed.
class Pause {
 public:
  // `results`: of the worker, so far.
  void rest(uint64_t results, uint64_t now_ns) {
    if (results != results_ || since_ns_ == 0) {
      results_ = results;
      since_ns_ = now_ns;
    }
    if (now_ns - since_ns_ < kYieldNs) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(kSleepUs));
    }
  }

 private:
  static constexpr uint64_t kYieldNs = 10'000'000;  // longer than most rounds take, losses included
  static constexpr int kSleepUs = 100;

  uint64_t results_ = 0;
  uint64_t since_ns_ = 0;
};

constexpr double kMostSeconds = 1e8;

}  // namespace

size_t element_bytes(DataType type) {
  return static_cast<size_t>(type) < kDataTypes ? slime::element_bytes(type_of(type)) : 0;
}

Outcome Context::Impl::check(const Reduction& reduction) const {
  const size_t width = element_bytes(reduction.type);
  if (width == 0 || reduction.op > Op::kMax) {
    return {Code::kInvalid,
            "allreduce: there is no type " + std::to_string(static_cast<int>(reduction.type)) +
                " with operation " + std::to_string(static_cast<int>(reduction.op))};
  }
  if (!Payload::supports(type_of(reduction.type), op_of(reduction.op))) {
    return {Code::kUnsupported,
            "allreduce: a switch has minimum and maximum of integers only, floats can be summed"};
  }
  if (reduction.count > PTRDIFF_MAX / width) {
    return {Code::kInvalid, "allreduce: " + std::to_string(reduction.count) + " elements of " +
                                std::to_string(width) + " bytes do not fit into memory"};
  }
  if (reduction.count > 0 && (reduction.send == nullptr || reduction.receive == nullptr)) {
    return {Code::kInvalid, "allreduce: a buffer is NULL"};
  }
  if (overlap_partly(reduction, reduction.count * width)) {
    return {Code::kInvalid, "allreduce: send and receive overlap; let them be the same or apart"};
  }
  return {};
}

// Past the conversion, a float is an integer of its size. Those of 16 bits are two bytes: a switch
// has no integers between.
Operation Context::Impl::operation_of(const Reduction& reduction) const {
  Operation operation{.send = reduction.send,
                      .receive = reduction.receive,
                      .count = reduction.count,
                      .type = type_of(reduction.type),
                      .op = op_of(reduction.op)};
  if (mode_ != Mode::kBypass || !is_float(operation.type)) return operation;
  const bool wide = operation.type == slime::DataType::kFloat32;
  operation.type = wide ? slime::DataType::kInt32 : slime::DataType::kInt8;
  if (!wide) operation.count *= 2;
  return operation;
}

Context::Impl::Impl(const Options& options, Opened opened)
    : rank_(options.rank),
      ranks_(options.ranks),
      mode_(opened.mode),
      timeout_s_(opened.settings.request_timeout),
      path_(std::move(opened.path)) {}

Context::Impl::~Impl() = default;

uint64_t Context::Impl::deadline_of(double timeout_s) const {
  const double seconds = timeout_s > 0 ? std::min(timeout_s, kMostSeconds) : timeout_s_;
  return steady_now_ns() + seconds_to_ns(seconds);
}

Outcome Context::Impl::late(const char* what) const {
  return {Code::kTimeout, "allreduce, rank " + std::to_string(rank_) + " of " +
                              std::to_string(ranks_) + ": " + what +
                              "; do all ranks start the same operations? Look at their logs"};
}

Outcome Context::Impl::try_start(const Reduction& reduction, Request* request) {
  if (!failure_) return failure_;
  uint64_t ticket = 0;
  const Status status = path_->start(operation_of(reduction), &ticket);
  if (status == Status::kAgain) {
    return {Code::kWouldBlock, std::to_string(kMaxOutstanding) +
                                   " operations are under way; wait for one before starting more"};
  }
  if (status != Status::kOk) return failure_ = outcome_of(path_->failure());
  *request = {newest_ = ticket + 1};
  return {};
}

Outcome Context::Impl::step(uint64_t ticket, bool* done, uint64_t* results) {
  if (!failure_) return failure_;
  const Status status = path_->test(ticket, done);
  if (results != nullptr) *results = path_->results();
  if (status != Status::kOk) return failure_ = outcome_of(path_->failure());
  return {};
}

Outcome Context::Impl::start(const Reduction& reduction, Request* request) {
  if (request == nullptr) return {Code::kInvalid, "all_reduce_async: request is NULL"};
  if (auto checked = check(reduction); !checked) return checked;
  const std::lock_guard lock(mutex_);
  return try_start(reduction, request);
}

Outcome Context::Impl::test(const Request& request, bool* done) {
  if (done == nullptr) return {Code::kInvalid, "test: done is NULL"};
  *done = false;
  const std::lock_guard lock(mutex_);
  if (request.id == 0 || request.id > newest_) {
    return {Code::kInvalid,
            "request " + std::to_string(request.id) + " was not started by this Context"};
  }
  return step(request.id - 1, done, nullptr);
}

Outcome Context::Impl::wait(const Request& request, double timeout_s) {
  bool done = false;
  if (auto tested = test(request, &done); !tested || done) return tested;
  return wait_until(request, deadline_of(timeout_s));
}

// Repeats `step` with the mutex held until it is done, has failed, or has begun after the deadline.
template <typename Step>
Outcome Context::Impl::repeat_until(uint64_t deadline_ns, const char* late_text, Step step) {
  Pause pause;
  for (;;) {
    const uint64_t now_ns = steady_now_ns();
    bool done = false;
    uint64_t results = 0;
    {
      const std::lock_guard lock(mutex_);
      auto moved = step(&done, &results);
      if (!moved || done) return moved;
    }
    if (now_ns >= deadline_ns) return late(late_text);
    pause.rest(results, now_ns);
  }
}

Outcome Context::Impl::wait_until(const Request& request, uint64_t deadline_ns) {
  return repeat_until(
      deadline_ns, "the operation is not done in time",
      [&](bool* done, uint64_t* results) { return step(request.id - 1, done, results); });
}

Outcome Context::Impl::start_until(const Reduction& reduction, Request* request,
                                   uint64_t deadline_ns) {
  return repeat_until(deadline_ns, "no operation before this one ended in time",
                      [&](bool* done, uint64_t* results) {
                        auto started = try_start(reduction, request);
                        *done = started.code != Code::kWouldBlock;
                        bool ended = false;
                        return *done ? started : step(newest_ - 1, &ended, results);
                      });
}

Outcome Context::Impl::run(const Reduction& reduction, double timeout_s) {
  if (auto checked = check(reduction); !checked) return checked;
  const uint64_t deadline_ns = deadline_of(timeout_s);
  Request request;
  if (auto started = start_until(reduction, &request, deadline_ns); !started) return started;
  auto waited = wait_until(request, deadline_ns);
  return waited.code == Code::kTimeout ? abandon(std::move(waited)) : waited;
}

// The caller takes its buffers back, so nothing may be received into them any more.
Outcome Context::Impl::abandon(Outcome why) {
  const std::lock_guard lock(mutex_);
  if (!path_) return failure_;
  last_report_ = path_->report();
  path_.reset();
  why.what += "; this Context is at its end";
  return failure_ = std::move(why);
}

WorkerReport Context::Impl::report() const {
  const std::lock_guard lock(mutex_);
  return path_ ? path_->report() : last_report_;
}

}  // namespace slime::aggregation
