// Loss, silence and refusal: when a worker sends again, asks who is missing, and gives up.
#include <algorithm>
#include <numeric>
#include <utility>

#include "collnet/worker.h"

namespace slime {
namespace {

constexpr uint64_t kSuspectAgainNs = 5'000'000'000;

}  // namespace

void Worker::check_timers(uint64_t now_ns) {
  uint64_t next = UINT64_MAX;
  for (uint32_t index = 0; index < options_.slots && !failed_; ++index) {
    Slot& slot = slots_[index];
    if (!slot.waiting) continue;
    if (now_ns >= slot.deadline_ns) on_timeout(index, now_ns);
    next = std::min(next, slot.deadline_ns);
  }
  next_check_ns_ = next;
}

void Worker::on_timeout(uint32_t index, uint64_t now_ns) {
  Slot& slot = slots_[index];
  ++counters_.timeouts;
  if (now_ns - slot.first_sent_ns >= options_.dead_ns) return give_up(overdue(index, now_ns));
  if (!direct_ && !trouble_ && is_silent(index)) {
    find_lost_rails();
    trouble_ = unanswered(index, now_ns);
    silent_rail_ = rail_of(index);
  }
  round_trip_.timed_out(now_ns);
  ++counters_.retransmitted;
  slot.resent = true;
  transmit(index, now_ns);
  if (now_ns >= slot.query_ns) ask(index, now_ns);
}

bool Worker::is_silent(uint32_t index) const {
  const Slot& slot = slots_[index];
  const uint64_t since = std::max(heard_at_[rail_of(index)], slot.asked_at);
  return slot.waiting && attention_.ns() - since >= options_.silent_ns;
}

// It may have been late only, or this process was, and found what lay in its socket.
void Worker::heard_on(uint32_t rail) {
  heard_at_[rail] = attention_.ns();
  lost_rails_ &= ~(1u << rail);
  if (silent_rail_ != rail) return;
  silent_rail_.reset();
  trouble_.reset();
  lost_rails_ = 0;
}

// A switch that is heard on other rails is there: one that has just died was heard on all of them
// some time ago. On a rail without open rounds nothing is heard but answers to questions, and
// nothing is missing.
void Worker::find_lost_rails() {
  uint32_t silent = 0, heard = 0;
  const uint64_t lately_ns = std::max(options_.silent_ns / 2, 2 * options_.suspect_ns);
  for (uint32_t index = 0; index < options_.slots; ++index) {
    if (is_silent(index)) silent |= 1u << rail_of(index);
  }
  for (uint32_t rail = 0; rail < rails_; ++rail) {
    if (attention_.ns() - heard_at_[rail] < lately_ns) heard |= 1u << rail;
  }
  lost_rails_ = heard != 0 ? silent & ~heard : 0;
}

void Worker::ask(uint32_t index, uint64_t now_ns) {
  Slot& slot = slots_[index];
  slot.query_ns = now_ns + options_.suspect_ns;
  ++counters_.queries;
  query(index, served_by(index), 0);
  if (rails_ > 1) ask_on_other_rails(index, now_ns);
}

// Those without open rounds hear nothing by themselves, and are needed to tell a lost rail from a
// lost switch.
void Worker::ask_on_other_rails(uint32_t index, uint64_t now_ns) {
  if (now_ns - rails_asked_ns_ < options_.suspect_ns) return;
  rails_asked_ns_ = now_ns;
  for (uint32_t rail = 0; rail < rails_; ++rail) {
    const uint32_t first = rail * shards_;
    if (rail != rail_of(index) && first < options_.slots) query(first, served_by(first), 0);
  }
}

// Many slots wait, perhaps for different ranks: somebody else is named some time later.
void Worker::on_status(const sap::Header& header, uint32_t bits, uint64_t now_ns) {
  const Slot& slot = slots_[header.slot];
  if (!slot.waiting || header.epoch != slot.epoch) return;
  last_arrived_ = Arrived{bits, header.level > 0};
  std::string missing = missing_ranks();
  // The round is complete and its result was lost. A switch may say only that in answer to a query;
  // the result comes in answer to the contribution, which is sent again.
  if (missing.empty()) return last_arrived_.reset();
  if (suspected_ == last_arrived_ || now_ns < suspect_again_ns_) return;
  suspect_again_ns_ = now_ns + kSuspectAgainNs;
  suspected_ = last_arrived_;
  suspicion_ = std::move(missing);
}

std::string Worker::missing_ranks() const {
  if (!direct_ && !options_.branches.empty()) {
    return last_arrived_->at_root
               ? missing_branches()
               : ranks_without(options_.branches[options_.branch].ranks, last_arrived_->bits);
  }
  std::vector<uint32_t> all(std::min(options_.contributors, sap::kMaxChildren));
  std::iota(all.begin(), all.end(), 0);
  return ranks_without(all, last_arrived_->bits);
}

// The root knows leaves only: one of the ranks below is late, or the leaf itself is gone.
std::string Worker::missing_branches() const {
  std::string text;
  for (uint32_t i = 0; i < options_.branches.size() && i < sap::kMaxChildren; ++i) {
    if (last_arrived_->bits >> i & 1) continue;
    const Branch& branch = options_.branches[i];
    text += (text.empty() ? "" : "; ") + ranks_without(branch.ranks, 0) + " (below the switch at " +
            branch.control.to_string() + ")";
  }
  return text;
}

Error Worker::unanswered(uint32_t index, uint64_t now_ns) const {
  const Slot& slot = slots_[index];
  const double seconds = static_cast<double>(now_ns - slot.first_sent_ns) / 1e9;
  if (direct_) {
    return make_error(Status::kTimeout, 0,
                      "in-network allreduce, without a switch: rank %u, which sums up a part, has "
                      "not answered for %.1f s; look at its log first",
                      served_by(index).index, seconds);
  }
  const std::string rail = rails_ > 1 ? " over rail " + std::to_string(rail_of(index)) : "";
  return make_error(Status::kTimeout, 0,
                    "in-network allreduce: the switch has not answered%s for %.1f s (job %u, "
                    "generation %u, %u retransmissions in this round); check that it runs and "
                    "that UDP reaches it",
                    rail.c_str(), seconds, job_, generation_, slot.attempts - 1);
}

Error Worker::overdue(uint32_t index, uint64_t now_ns) const {
  if (!last_arrived_) return unanswered(index, now_ns);
  return make_error(Status::kRemote, 0,
                    "in-network allreduce: rank %s has not contributed for %.1f s; look at its log "
                    "first",
                    missing_ranks().c_str(),
                    static_cast<double>(now_ns - slots_[index].first_sent_ns) / 1e9);
}

namespace {

const char* meaning_of(sap::Rejection reason) {
  switch (reason) {
    case sap::Rejection::kNoJob:
      return "the job has ended there: its lease ran out, or the switch was started again";
    case sap::Rejection::kGeneration:
      return "the job was fenced and goes on in another generation";
    case sap::Rejection::kSource:
      return "our address is not the one that the job was made with; is there a NAT between?";
    case sap::Rejection::kSlot:
      return "the slot is not the job's, or not on that port";
    case sap::Rejection::kShape:
      return "another rank contributed other lanes, type or operation: do all ranks call the same "
             "collectives in the same order?";
  }
  return "for a reason that this version does not know";
}

}  // namespace

void Worker::on_reject(const sap::Header& header, uint32_t code) {
  const Slot& slot = slots_[header.slot];
  const auto reason = static_cast<sap::Rejection>(code);
  const bool disagree = reason == sap::Rejection::kShape;
  // Perhaps forged: an answer to nothing that this worker has sent. And a rank that serves a slot
  // refuses what comes before it has moved too: the time-out sends it again.
  if (!slot.waiting || header.epoch != slot.epoch || (direct_ && !disagree)) {
    ++counters_.foreign;
    return;
  }
  Error error = make_error(Status::kRemote, static_cast<int>(code),
                           "in-network allreduce: job %u, generation %u, slot %u was refused "
                           "(reason %u): %s",
                           job_, generation_, header.slot, code, meaning_of(reason));
  if (disagree) return give_up(std::move(error));  // the same would happen anywhere
  if (!trouble_) trouble_ = std::move(error);
}

void Worker::give_up(Error error) {
  if (!std::exchange(failed_, true)) failure_ = std::move(error);
}

}  // namespace slime
