#include "collnet/session.h"

#include <sched.h>
#include <slime/log.h>

#include <vector>

namespace slime {

namespace {

constexpr uint64_t kLookNs = 20'000'000;
constexpr uint64_t kCalledNs = 5'000'000;  // no longer ago: NCCL's thread does it
constexpr uint64_t kServeNs = 200'000;
// How long members wait for each other at the end, and for one that has gone to matter.
constexpr uint64_t kGraceNs = 1'000'000'000;

}  // namespace

Session::Session(Fabric& fabric, std::string name) : fabric_(fabric), name_(std::move(name)) {}

// The job ends with the session that has its lease, so members wait until nobody needs the switch
// any more, nor a result that only one of them has.
Session::~Session() {
  if (connected_) keeper_->release(this);
  if (!worker_) return;
  finish_move();
  if (worker_->status() == Status::kOk && stage_ == Stage::kStill) take_leave();
  log_report(report());
}

void Session::finish_move() {
  const uint64_t until_ns = fabric_.clock().now_ns() + kGraceNs;
  while (stage_ != Stage::kStill && worker_->status() == Status::kOk) {
    const uint64_t now_ns = fabric_.clock().now_ns();
    port_->receive(*this, now_ns);
    port_->flush();
    continue_move(now_ns);
    if (now_ns > until_ns) return;
    sched_yield();
  }
}

// Operations may be outstanding, and their buffers gone: a paused worker touches none, and answers
// the others all the same.
void Session::take_leave() {
  worker_->pause();
  std::vector<std::byte> done(ring_->size());
  if (!ring_->begin_gather(done, 1, Ring::Topic::kLeave)) return;
  const uint64_t until_ns = fabric_.clock().now_ns() + kGraceNs;
  Error error;
  for (;;) {
    const uint64_t now_ns = fabric_.clock().now_ns();
    if (ring_->step(&error) != Status::kAgain || now_ns > until_ns) return;
    port_->receive(*this, now_ns);
    port_->flush();
    sched_yield();
  }
}

WorkerReport Session::report() {
  const std::lock_guard lock(mutex_);
  return {.name = name_,
          .worker = worker_->counters(),
          .port = port_->counters(),
          .round_trip_ns = worker_->round_trip_ns(),
          .without_switch = served_ != nullptr};
}

uint64_t Session::results() {
  const std::lock_guard lock(mutex_);
  return worker_->counters().results;
}

Status Session::start(const Operation& operation, uint64_t* ticket) {
  const std::lock_guard lock(mutex_);
  const Status status = worker_->start(operation, fabric_.clock().now_ns(), ticket);
  port_->flush();
  return status;
}

Status Session::test(uint64_t ticket, bool* done) {
  const std::lock_guard lock(mutex_);
  called_ns_ = fabric_.clock().now_ns();
  progress(called_ns_);
  *done = worker_->done(ticket);
  return *done ? Status::kOk : worker_->status();
}

uint64_t Session::attend(uint64_t now_ns) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock) now_ns = fabric_.clock().now_ns();  // NCCL's thread may have been here since
  if (!lock || now_ns - called_ns_ < kCalledNs) return now_ns + kCalledNs;
  progress(now_ns);
  // Where the ranks sum up for each other, one that is not called serves the others all the same.
  return now_ns + (served_ ? kServeNs : kLookNs);
}

void Session::progress(uint64_t now_ns) {
  port_->receive(*this, now_ns);
  worker_->poll(now_ns);
  port_->flush();
  if (way_back_) way_back_->poll(now_ns);
  if (stage_ != Stage::kStill) continue_move(now_ns);
  if (now_ns >= look_ns_) look_after(now_ns);
  if (const auto missing = worker_->take_suspicion(); missing && !missing->empty()) {
    SLIME_WARN("%s: rank %s has not contributed for 300 ms", name_.c_str(), missing->c_str());
  }
}

// The switch cannot tell a slow rank from a dead one; its neighbours in the ring can.
void Session::look_after(uint64_t now_ns) {
  look_ns_ = now_ns + kLookNs;
  const uint64_t results = worker_->counters().results;
  const bool moves = results != results_;
  results_ = results;
  const auto whole = ring_->check();
  if (must_move(now_ns)) begin_move();
  if (whole || moves) {
    lost_since_ns_ = 0;
    return;
  }
  if (lost_since_ns_ == 0) lost_since_ns_ = now_ns;
  if (now_ns - lost_since_ns_ >= kGraceNs) worker_->give_up(whole.error());
}

}  // namespace slime
