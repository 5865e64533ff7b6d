// The public calls.
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "aggregation/context_impl.h"
#include "base/clock.h"
#include "collnet/comm/report.h"

namespace slime::aggregation {

Outcome Context::open(const Options& options, std::unique_ptr<Context>* context) {
  if (context == nullptr) return {Code::kInvalid, "Context::open: context is NULL"};
  context->reset();
  ensure_log();
  auto opened = open_path(options);
  if (!opened) return outcome_of(opened.error());
  context->reset(new Context(std::make_unique<Impl>(options, std::move(*opened))));
  return {};
}

Context::Context(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Context::~Context() = default;

Outcome Context::all_reduce(const Reduction& reduction, double timeout_s) {
  return impl_->run(reduction, timeout_s);
}
Outcome Context::all_reduce_async(const Reduction& reduction, Request* request) {
  return impl_->start(reduction, request);
}
Outcome Context::test(const Request& request, bool* done) { return impl_->test(request, done); }
Outcome Context::wait(const Request& request, double timeout_s) {
  return impl_->wait(request, timeout_s);
}
Statistics Context::statistics() const { return statistics_of(impl_->report()); }
std::string Context::statistics_json() const { return json_text_of(impl_->report()); }
uint32_t Context::rank() const { return impl_->rank(); }
uint32_t Context::ranks() const { return impl_->ranks(); }

namespace {

// How a thread waits for an operation: it yields while results come, and sleeps once none have come
// for a while.
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

uint64_t now() { return SteadyClock::instance().now_ns(); }

}  // namespace

Context::Impl::Impl(const Options& options, Opened opened)
    : rank_(options.rank),
      ranks_(options.ranks),
      mode_(opened.mode),
      timeout_s_(opened.settings.request_timeout),
      path_(std::move(opened.path)) {}

Context::Impl::~Impl() = default;

uint64_t Context::Impl::deadline_of(double timeout_s) const {
  const double seconds = timeout_s > 0 ? std::min(timeout_s, kMostSeconds) : timeout_s_;
  return now() + seconds_to_ns(seconds);
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

Outcome Context::Impl::wait_until(const Request& request, uint64_t deadline_ns) {
  Pause pause;
  for (;;) {
    bool done = false;
    uint64_t results = 0;
    {
      const std::lock_guard lock(mutex_);
      auto moved = step(request.id - 1, &done, &results);
      if (!moved || done) return moved;
    }
    const uint64_t now_ns = now();
    if (now_ns >= deadline_ns) return late("the operation is not done in time");
    pause.rest(results, now_ns);
  }
}

Outcome Context::Impl::start_until(const Reduction& reduction, Request* request,
                                   uint64_t deadline_ns) {
  Pause pause;
  for (;;) {
    uint64_t results = 0;
    {
      const std::lock_guard lock(mutex_);
      auto started = try_start(reduction, request);
      if (started.code != Code::kWouldBlock) return started;
      bool done = false;
      auto moved = step(newest_ - 1, &done, &results);
      if (!moved) return moved;
    }
    const uint64_t now_ns = now();
    if (now_ns >= deadline_ns) return late("no operation before this one ended in time");
    pause.rest(results, now_ns);
  }
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

// A counter that the public struct lacks does not compile.
Statistics statistics_of(const WorkerReport& report) {
  Statistics statistics;
#define SLIME_FIELD(name, help) statistics.name = report.worker.name;
  SLIME_WORKER_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
#define SLIME_FIELD(name, help) statistics.name = report.port.name;
  SLIME_UDP_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
  statistics.round_trip_ns = report.round_trip_ns;
  statistics.without_switch = report.without_switch();
  statistics.switches = report.switches;
  statistics.lost_switches = report.lost_switches;
  return statistics;
}

// An interface's name need not be UTF-8; a replacement character beats no statistics.
std::string json_text_of(const WorkerReport& report) {
  return json_of(report).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace slime::aggregation
