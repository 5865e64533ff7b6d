#include "collnet/session.h"

#include <sched.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/log.h"

namespace slime {

namespace {

constexpr uint64_t kLookNs = 20'000'000;
constexpr uint64_t kCalledNs = 5'000'000;  // no longer ago: NCCL's thread does it
constexpr uint64_t kServeNs = 200'000;
constexpr uint64_t kMissingNs = 4'000'000'000;  // a rank that all switches miss is named once
// How long members wait for each other at the end, and for one that has gone to matter.
constexpr uint64_t kGraceNs = 1'000'000'000;

}  // namespace

Session::Session(Fabric& fabric, std::string name) : fabric_(fabric) {
  team_.name = std::move(name);
  held_.reserve(Worker::kMaxOperations);
}

// A job ends with the session that has its lease, so members wait until nobody needs a switch any
// more, nor a result that only one of them has.
Session::~Session() {
  if (connected_) team_.keeper->release(this);
  if (!joined_) return;
  held_.clear();  // their buffers may be gone
  finish_move();
  if (status() == Status::kOk && stage_ == Stage::kStill) take_leave();
  log_report(report());
}

// All workers stop before the caller sees the failure, because it may then free the buffers.
void Session::give_up(Error error) {
  for (const auto& share : shares_) share->worker().give_up(error);
  if (!std::exchange(failed_, true)) failure_ = std::move(error);
}

void Session::adopt_failure() {
  for (const auto& share : shares_) {
    if (failed_ || share->worker().status() == Status::kOk) continue;
    give_up(share->worker().failure());
  }
}

void Session::finish_move() {
  const uint64_t until_ns = fabric_.clock().now_ns() + kGraceNs;
  while (stage_ != Stage::kStill && status() == Status::kOk) {
    const uint64_t now_ns = fabric_.clock().now_ns();
    team_.port->receive(*this, now_ns);
    team_.port->flush();
    continue_move(now_ns);
    if (now_ns > until_ns) return;
    sched_yield();
  }
}

// Operations may be outstanding, and their buffers gone: a paused worker touches none, and answers
// the others all the same.
void Session::take_leave() {
  for (const auto& share : shares_) share->worker().pause();
  std::vector<std::byte> done(ring_->size());
  if (!ring_->begin_gather(done, 1, Ring::Topic::kLeave)) return;
  const uint64_t until_ns = fabric_.clock().now_ns() + kGraceNs;
  Error error;
  for (;;) {
    const uint64_t now_ns = fabric_.clock().now_ns();
    if (ring_->step(&error) != Status::kAgain || now_ns > until_ns) return;
    team_.port->receive(*this, now_ns);
    team_.port->flush();
    sched_yield();
  }
}

// Each worker has been given a part of every operation, perhaps an empty one.
WorkerCounters Session::counters() const {
  WorkerCounters sum;
  for (const auto& share : shares_) {
    const WorkerCounters& one = share->worker().counters();
#define SLIME_FIELD(name, help) sum.name += one.name;
    SLIME_WORKER_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
    sum.operations = one.operations;
  }
  return sum;
}

WorkerReport Session::report() {
  const std::lock_guard lock(mutex_);
  WorkerReport report{.name = team_.name,
                      .worker = counters(),
                      .port = team_.port->counters(),
                      .switches = static_cast<uint32_t>(shares_.size())};
  for (const auto& share : shares_) {
    report.round_trip_ns = std::max(report.round_trip_ns, share->worker().round_trip_ns());
  }
  report.lost_switches = lost_switches();
  return report;
}

uint64_t Session::results() {
  const std::lock_guard lock(mutex_);
  return counters().results;
}

Status Session::start(const Operation& operation, uint64_t* ticket) {
  const std::lock_guard lock(mutex_);
  const uint64_t now_ns = fabric_.clock().now_ns();
  if (status() != Status::kOk) return status();
  if (!Payload::supports(operation.type, operation.op)) return Status::kUnsupported;
  const auto room = [&](const auto& share) { return share->worker().room() > held_.size(); };
  if (!std::ranges::all_of(shares_, room)) return Status::kAgain;
  *ticket = tickets_++;
  held_.push_back(operation);
  start_held(now_ns);
  team_.port->flush();
  return Status::kOk;
}

// Not in the middle of a move, which may change how operations are spread.
void Session::start_held(uint64_t now_ns) {
  if (stage_ != Stage::kStill) return;
  for (const Operation& operation : held_) start_parts(operation, now_ns);
  held_.clear();
}

// Each share gets a part, perhaps an empty one, so that tickets are the same everywhere.
void Session::start_parts(const Operation& operation, uint64_t now_ns) {
  const uint64_t per_packet = shares_[0]->worker().elements_per_packet(operation);
  const uint64_t width = number::element_bytes(operation.type);
  const auto chunks = spread_.cut((operation.count + per_packet - 1) / per_packet);
  uint64_t first = 0;
  for (size_t i = 0; i < shares_.size(); ++i) {
    Operation part = operation;
    part.count = std::min(chunks[i] * per_packet, operation.count - first);
    part.send = static_cast<const std::byte*>(operation.send) + first * width;
    part.receive = static_cast<std::byte*>(operation.receive) + first * width;
    uint64_t ticket = 0;
    (void)shares_[i]->worker().start(part, now_ns, &ticket);  // it can: start() has seen to that
    first += part.count;
  }
}

bool Session::done(uint64_t ticket) const {
  const auto is_done = [&](const auto& share) { return share->worker().done(ticket); };
  return ticket < tickets_ - held_.size() && std::ranges::all_of(shares_, is_done);
}

Status Session::test(uint64_t ticket, bool* is_done) {
  const std::lock_guard lock(mutex_);
  called_ns_ = fabric_.clock().now_ns();
  progress(called_ns_);
  *is_done = done(ticket);
  return *is_done ? Status::kOk : status();
}

uint64_t Session::attend(uint64_t now_ns) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock) now_ns = fabric_.clock().now_ns();  // NCCL's thread may have been here since
  if (!lock || now_ns - called_ns_ < kCalledNs) return now_ns + kCalledNs;
  progress(now_ns);
  // Where the ranks sum up for each other, one that is not called serves the others all the same.
  const auto serves = [](const auto& share) {
    return !share->on_switch() && share->worker().room() < Worker::kMaxOperations;
  };
  const bool all_lost = lost_switches() == shares_.size();
  return now_ns + (all_lost || std::ranges::any_of(shares_, serves) ? kServeNs : kLookNs);
}

void Session::progress(uint64_t now_ns) {
  team_.port->receive(*this, now_ns);
  for (const auto& share : shares_) share->poll(now_ns);
  team_.port->flush();
  if (stage_ != Stage::kStill) continue_move(now_ns);
  if (now_ns >= look_ns_) look_after(now_ns);
  for (const auto& share : shares_) {
    const auto missing = share->worker().take_suspicion();
    if (missing && !missing->empty()) warn_of_missing(*missing, now_ns);
  }
  adopt_failure();
}

void Session::warn_of_missing(const std::string& ranks, uint64_t now_ns) {
  if (ranks == missing_ && now_ns - missing_ns_ < kMissingNs) return;
  missing_ = ranks;
  missing_ns_ = now_ns;
  SLIME_WARN("%s: rank %s has not contributed for 300 ms", name().c_str(), ranks.c_str());
}

uint32_t Session::lost_switches() const {
  const auto lost = [](const auto& share) { return !share->on_switch(); };
  return static_cast<uint32_t>(std::ranges::count_if(shares_, lost));
}

void Session::on_datagram(std::span<const std::byte> datagram, const SocketAddress& from,
                          uint64_t now_ns) {
  sap::Header header;
  if (sap::decode(datagram, &header) != sap::Fault::kNone) return;
  share_of(header).on_datagram(header, datagram, from, now_ns);
}

// A packet of no share is counted by the first one.
Share& Session::share_of(const sap::Header& header) const {
  Share* found = shares_.front().get();
  for (const auto& share : shares_) {
    if (!share->is_of_job(header)) continue;
    found = share.get();
    if (header.token == share->job().token) break;
  }
  return *found;
}

// The switch cannot tell a slow rank from a dead one; its neighbours in the ring can.
void Session::look_after(uint64_t now_ns) {
  look_ns_ = now_ns + kLookNs;
  const uint64_t results = counters().results;
  const bool moves = results != results_;
  results_ = results;
  const auto whole = ring_->check();
  if (must_move(now_ns)) begin_move();
  if (whole || moves) {
    lost_since_ns_ = 0;
    return;
  }
  if (lost_since_ns_ == 0) lost_since_ns_ = now_ns;
  if (now_ns - lost_since_ns_ >= kGraceNs) give_up(whole.error());
}

}  // namespace slime
