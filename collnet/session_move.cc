// What the members do when a switch is gone: each becomes the switch of a part of its slots. And
// when it is back: they return to it.
//
//   1. the rank that notices pauses its workers and begins a gather in the ring. The other ranks
//      see the invitation (Ring::invited), pause, and join the gather, so that no rank accepts a
//      result any more. In it each rank says for every share whether that must leave its switch,
//      and how many operations it has started; it holds new ones until the end. Rank 0 also says
//      which new job it has got from a switch
//   2. all tell each other the epochs of their slots
//   3. all ranks move the shares that must move, and resume the others as they were
//      (share_move.cc). As long as some share is on its switch, those that are not get no part of
//      the operations that no rank has started yet

#include <algorithm>

#include "base/log.h"
#include "collnet/session.h"

namespace slime {

// While the members connect, the ring is needed for agreement, and a switch that fails then fails
// connect.
bool Session::must_move(uint64_t now_ns) const {
  if (!connected_ || stage_ != Stage::kStill) return false;
  if (ring_->invited(Ring::Topic::kMove)) return true;
  // Who leaves does not move any more.
  const bool may_seek = ring_->rank() == 0 && !ring_->invited(Ring::Topic::kLeave);
  return std::ranges::any_of(shares_,
                             [&](const auto& share) { return share->must_move(may_seek, now_ns); });
}

void Session::begin_move() {
  if (status() != Status::kOk) return;  // a job that has failed stays where it is
  for (const auto& share : shares_) {
    const auto& trouble = share->worker().trouble();
    if (!trouble) continue;
    SLIME_WARN("%s: %s", share->name().c_str(), trouble->what.c_str());
    if (share->is_stuck()) return give_up(*trouble);
  }
  auto begun = announce();
  if (!begun) give_up(begun.error());
}

Result<void> Session::announce() {
  const size_t count = shares_.size();
  announced_.assign(count * ring_->size(), Grant{});
  for (size_t i = 0; i < count; ++i) {
    auto own = shares_[i]->begin_move();
    if (!own) return fail(std::move(own.error()));
    own->operations = spread_.operations();
    announced_[count * ring_->rank() + i] = *own;
  }
  stage_ = Stage::kAnnouncing;
  return ring_->begin_gather(std::as_writable_bytes(std::span(announced_)), count * sizeof(Grant),
                             Ring::Topic::kMove);
}

void Session::continue_move(uint64_t now_ns) {
  Error error;
  const Status status = ring_->step(&error);
  if (status == Status::kAgain) return;
  if (status != Status::kOk) return give_up(error);
  auto moved = next_stage(now_ns);
  if (!moved) give_up(moved.error());
}

Result<void> Session::next_stage(uint64_t now_ns) {
  if (stage_ == Stage::kAnnouncing) return compare();
  stage_ = Stage::kStill;
  auto moved = move_shares(now_ns);
  if (!moved) return moved;
  hear_switches();
  spread_anew();
  auto distinct = check_distinct();
  if (distinct) start_held(now_ns);
  return distinct;
}

Result<void> Session::compare() {
  stage_ = Stage::kComparing;
  size_t slots = 0;
  for (const auto& share : shares_) slots += share->job().slots;
  epochs_.assign(slots * ring_->size(), 0);
  auto own = std::span(epochs_).subspan(slots * ring_->rank(), slots);
  for (const auto& share : shares_) {
    share->worker().epochs(own);
    own = own.subspan(share->job().slots);
  }
  return ring_->begin_gather(std::as_writable_bytes(std::span(epochs_)), slots * sizeof(uint32_t),
                             Ring::Topic::kMove);
}

Result<void> Session::move_shares(uint64_t now_ns) {
  const uint32_t ranks = ring_->size();
  const size_t slots = epochs_.size() / ranks;
  size_t first = 0;
  for (size_t i = 0; i < shares_.size(); ++i) {
    std::vector<Grant> told;
    std::vector<uint32_t> epochs;
    const uint32_t own_slots = shares_[i]->job().slots;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      told.push_back(announced_[rank * shares_.size() + i]);
      const auto from = epochs_.begin() + static_cast<ptrdiff_t>(rank * slots + first);
      epochs.insert(epochs.end(), from, from + own_slots);
    }
    auto moved = shares_[i]->move(told, epochs, now_ns);
    if (!moved) return moved;
    first += own_slots;
  }
  return {};
}

// From the operation on that no rank has started. All ranks compute the same, since all have the
// same announcements.
void Session::spread_anew() {
  uint64_t first = spread_.operations();
  for (const Grant& grant : announced_) first = std::max(first, grant.operations);
  Spread::PerSwitch weights{};
  const bool none = lost_switches() == shares_.size();
  if (none && shares_.size() > 1 && ring_->rank() == 0) {
    SLIME_WARN("%s: no switch is left: the ranks sum up for each other, slower", name().c_str());
  }
  for (size_t i = 0; i < shares_.size(); ++i) {
    const Share& share = *shares_[i];
    weights[i] = none || share.on_switch() ? share.named().weight : 0;
  }
  spread_.change(first, weights);
}

// Ranks tell the packets of different shares apart by job, generation and token. Switches that do
// not know of each other may choose the same, once in 2^32.
Result<void> Session::check_distinct() const {
  const auto same = [](const WorkerOptions& one, const WorkerOptions& other) {
    return one.job == other.job && one.generation == other.generation && one.token == other.token;
  };
  for (size_t i = 0; i < shares_.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (!same(shares_[i]->job(), shares_[k]->job())) continue;
      return fail(make_error(Status::kRemote, 0,
                             "two switches gave jobs of the same number and token, which happens "
                             "by chance once in 2^32; start the job again"));
    }
  }
  return {};
}

}  // namespace slime
