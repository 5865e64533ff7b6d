// What the members do when their switch is gone: each becomes the switch of a part of the slots.
// And when it is back: they return to it.
//
//   1. whoever notices pauses its worker and begins a gather in the ring; the others see that they
//      are waited for, pause and join in, so that nobody accepts a result any more. With it rank 0
//      says where to: it may have got a new job from the switch
//   2. all tell each other the epochs of their slots
//   3. all resume: see worker_move.cc
//
// On a tree each leaf must be asked, by the first rank below it, and at once: when rank 0's leaf is
// there again, a move from ranks to ranks tells them to. A second one brings them together on what
// they got, if that is one job.
#include <slime/log.h>

#include <algorithm>

#include "collnet/session.h"

namespace slime {
namespace {

// A switch on which the job stayed for so long was not lost at once: the next try need not wait.
constexpr uint64_t kSteadyNs = 60'000'000'000;
constexpr uint32_t kMostRetries = 4;

}  // namespace

// While the members connect, the ring is needed for agreement, and a switch that fails then fails
// connect.
bool Session::must_move(uint64_t now_ns) const {
  if (!connected_ || stage_ != Stage::kStill) return false;
  // Who leaves does not move any more.
  const bool may_seek = way_back_ && ring_->rank() == 0 && !ring_->invited(Ring::Topic::kLeave);
  const bool found = may_seek && (way_back_->ready() || way_back_->has_come(now_ns));
  return worker_->trouble() || found || ring_->invited(Ring::Topic::kMove);
}

void Session::begin_move() {
  if (worker_->status() != Status::kOk) return;  // a job that has failed stays where it is
  if (worker_->trouble()) {
    SLIME_WARN("%s: %s", name_.c_str(), worker_->trouble()->what.c_str());
    if (is_stuck()) return worker_->give_up(*worker_->trouble());
  }
  worker_->pause();
  auto own = announcement();
  if (!own) return worker_->give_up(std::move(own.error()));
  announced_.assign(ring_->size(), Grant{});
  announced_[ring_->rank()] = *own;
  stage_ = Stage::kAnnouncing;
  auto begun = ring_->begin_gather(std::as_writable_bytes(std::span(announced_)), sizeof(Grant),
                                   Ring::Topic::kMove);
  if (!begun) worker_->give_up(std::move(begun.error()));
}

Result<Session::Grant> Session::announcement() const {
  if (way_back_ && way_back_->grant()) return grant_of(*way_back_->grant());
  const auto token = random_number<uint32_t>();
  if (!token) return fail(token.error());
  Grant own;
  own.token = *token;
  own.lost_rails = static_cast<uint8_t>(worker_->lost_rails());
  if (way_back_ && way_back_->ready()) own.from = Grant::From::kSought;
  return own;
}

// Between ranks trouble is a result that was found damaged: they try that round again, afresh. A
// few times; if nothing is completed meanwhile, then it is not chance.
bool Session::is_stuck() {
  if (!served_) return false;
  const uint64_t bytes = worker_->counters().bytes;
  retries_ = bytes == retried_at_ ? retries_ + 1 : 1;
  retried_at_ = bytes;
  return retries_ > kMostRetries;
}

void Session::continue_move(uint64_t now_ns) {
  Error error;
  const Status status = ring_->step(&error);
  if (status == Status::kAgain) return;
  if (status != Status::kOk) return worker_->give_up(std::move(error));
  auto moved = next_stage(now_ns);
  if (!moved) worker_->give_up(std::move(moved.error()));
}

Result<void> Session::next_stage(uint64_t now_ns) {
  if (stage_ == Stage::kAnnouncing) return compare();
  stage_ = Stage::kStill;
  Result<void> whole;
  if (announced_[0].from == Grant::From::kSwitch) {
    if (is_tree()) whole = check_parts(announced_);
    if (whole) return return_to_switch(announced_[leader()], now_ns);
  }
  auto left = leave_switch(now_ns);
  if (!left) return left;
  if (announced_[0].from == Grant::From::kSought) {
    ++tree_;
    if (way_back_) way_back_->go(tree_, now_ns);
  }
  if (!whole && way_back_) way_back_->give_back(whole.error(), now_ns);
  return {};
}

Result<void> Session::compare() {
  stage_ = Stage::kComparing;
  epochs_.assign(size_t{job_.slots} * ring_->size(), 0);
  worker_->epochs(std::span(epochs_).subspan(size_t{job_.slots} * ring_->rank(), job_.slots));
  return ring_->begin_gather(std::as_writable_bytes(std::span(epochs_)),
                             size_t{job_.slots} * sizeof(uint32_t), Ring::Topic::kMove);
}

Result<void> Session::leave_switch(uint64_t now_ns) {
  const bool left_before = served_ != nullptr;
  ++job_.generation;
  job_.token = announced_[0].token;
  drop_lost_rails();
  auto serving = serve();
  if (!serving) return serving;
  worker_->resume({.job = job_.job,
                   .generation = job_.generation,
                   .token = job_.token,
                   .direct = true,
                   .shards = 1,
                   .rails = 1,
                   .epochs = epochs_},
                  now_ns);
  if (left_before) return {};
  if (lease_) lease_->let_lapse();
  seek_switch(now_ns);
  if (ring_->rank() == 0) {
    SLIME_WARN(
        "%s: going on without the switch: the ranks sum up for each other, slower, with the "
        "same results",
        name_.c_str());
  }
  return {};
}

Result<void> Session::return_to_switch(const Grant& grant, uint64_t now_ns) {
  auto sound = check_grant(grant);
  if (!sound) return sound;
  auto address = SocketAddress::unpack(grant.address);
  if (!address) return fail(std::move(address.error()));
  job_.job = grant.job;
  job_.generation = grant.generation;
  job_.token = grant.token;
  job_.shards = grant.shards;
  port_->set_switch(*address, grant.shards);
  worker_->resume({.job = grant.job,
                   .generation = grant.generation,
                   .token = grant.token,
                   .shards = grant.shards,
                   .rails = members_.rails,
                   .epochs = epochs_},
                  now_ns);
  served_.reset();
  arrived_ns_ = now_ns;
  if (!way_back_) return {};
  const LeaseTerms terms{control_address_, who_, way_back_->grant()->job,
                         way_back_->grant()->lease_ms};
  lease_.emplace(terms, way_back_->take_client(), keeper_);
  way_back_.reset();
  SLIME_INFO("%s: on the switch at %s again, job %u", name_.c_str(),
             control_address_.to_string().c_str(), grant.job);
  return {};
}

// A switch that the ranks lose again and again, because packets do not reach it, say, is tried less
// and less often.
void Session::seek_switch(uint64_t now_ns) {
  const uint64_t first_ns = seconds_to_ns(fabric_.settings().switch_retry);
  if (ring_->rank() != leader() || first_ns == 0) return;
  const bool steady = now_ns - arrived_ns_ >= kSteadyNs;
  pause_ns_ = arrived_ns_ == 0 || steady ? first_ns
                                         : std::min(2 * pause_ns_, Reattachment::kLongestPauseNs);
  LeaseTerms terms{.address = control_address_, .who = who_, .job = {}, .lease_ms = 0};
  if (lease_) terms.job = lease_->terms().job;
  control::CreateJob job = lost_job();
  auto wanted = is_tree() ? Reattachment::Wanted(part_of(std::move(job), tree_))
                          : Reattachment::Wanted(std::move(job));
  way_back_.emplace(terms, std::move(wanted),
                    ring_->rank() == 0 ? pause_ns_ : Reattachment::kWhenTold, now_ns);
}

control::CreateJob Session::lost_job() const {
  control::CreateJob wanted = job_of_all();
  wanted.slots_wanted = wanted.slots_least = job_.slots;
  wanted.lanes_wanted = wanted.lanes_least = job_.lanes;
  return wanted;
}

Result<void> Session::serve() {
  if (ring_->size() > sap::kMaxChildren) {
    return fail(make_error(Status::kRemote, 0,
                           "%s: %u ranks cannot sum up for each other, at most %u can, so that "
                           "the job ends with its switches, or with a rail to one; see to these, "
                           "and start the job again",
                           name_.c_str(), ring_->size(), sap::kMaxChildren));
  }
  net::JobSpec spec;
  spec.job = job_.job;
  spec.generation = job_.generation;
  spec.token = job_.token;
  spec.slots = job_.slots;
  spec.max_lanes = job_.lanes;
  spec.children.assign(on_rail(0).begin(), on_rail(0).end());
  served_ = std::make_unique<net::Shard>(ring_->rank(), ring_->size());
  return served_->add_job(spec);
}

void Session::on_datagram(std::span<const std::byte> datagram, const SocketAddress& from,
                          uint64_t now_ns) {
  sap::Header header;
  if (sap::decode(datagram, &header) != sap::Fault::kNone) return;
  const bool asks_peer = (header.flags & sap::flag::kFallback) != 0;
  const bool for_server =
      header.type == sap::Type::kContribution || (header.type == sap::Type::kQuery && !asks_peer);
  if (!for_server) return worker_->on_datagram(datagram, now_ns);
  // Before this rank has moved too, what comes is dropped; the time-out sends it again.
  if (served_) served_->handle(datagram, from, now_ns, *this);
}

void Session::send(const net::Outgoing& packet, std::span<const SocketAddress> to) {
  std::array<std::byte, sap::kMaxPacketBytes> bytes;
  std::copy(packet.header.begin(), packet.header.end(), bytes.begin());
  std::copy(packet.payload.begin(), packet.payload.end(), bytes.begin() + sap::kHeaderBytes);
  const size_t size = sap::kHeaderBytes + packet.payload.size();
  for (const SocketAddress& member : to) port_->send(member, std::span(bytes).first(size));
}

}  // namespace slime
