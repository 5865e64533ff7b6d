#include "collnet/worker/switch_health.h"

namespace slime {
namespace {

double seconds_of(const RoundTimer& timer, uint64_t now_ns) {
  return static_cast<double>(now_ns - timer.first_sent_ns) / 1e9;
}

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

void SwitchHealth::clear_trouble() {
  trouble_.reset();
  damage_ = false;
  silent_rail_.reset();
  lost_rails_ = 0;
}

// The packet may have been late only; or this process was, and found it in its socket.
void SwitchHealth::heard_on(uint32_t rail) {
  heard_[rail] = observed_ns_;
  lost_rails_ &= ~(1u << rail);
  if (silent_rail_ == rail) clear_trouble();
}

void SwitchHealth::restart(uint64_t now_ns) {
  observe(now_ns);
  heard_.fill(observed_ns_);
}

void SwitchHealth::reset(uint64_t now_ns) {
  clear_trouble();
  restart(now_ns);
}

void SwitchHealth::report(Error error) {
  if (!trouble_) trouble_ = std::move(error);
}

void SwitchHealth::report_damage(Error error) {
  damage_ = damage_ || !trouble_;
  report(std::move(error));
}

// A rail is lost, and not the switch, where packets came on other rails lately: from a switch that
// has just died the last packets came at about the same time on all rails. A rail without open
// rounds gets only answers to questions, and is not silent in this sense.
void SwitchHealth::report_silence(uint32_t rail, uint32_t silent, uint32_t rails, Error error) {
  const uint64_t lately_ns = std::max(switch_timeout_ns_ / 2, 2 * suspect_ns_);
  uint32_t alive = 0;
  for (uint32_t other = 0; other < rails; ++other) {
    if (observed_ns_ - heard_[other] < lately_ns) alive |= 1u << other;
  }
  lost_rails_ = alive != 0 ? silent & ~alive : 0;
  trouble_ = std::move(error);
  silent_rail_ = rail;
}

// Errors ------------------------------------------------------------------------------------------

Error damaged_error(const sap::Header& result, uint32_t times) {
  return make_error(Status::kRemote, 0,
                    "in-network allreduce: %u results of slot %u, round %u (job %u, "
                    "generation %u) were not what the ranks' contributions come to, by "
                    "the check that travels with them; the switch, or the rank that "
                    "serves the slot without it, has a fault, likely in memory",
                    times, result.slot, result.epoch, result.job, result.generation);
}

Error reject_error(const sap::Header& reject, uint32_t code) {
  return make_error(Status::kRemote, static_cast<int>(code),
                    "in-network allreduce: job %u, generation %u, slot %u was refused "
                    "(reason %u): %s",
                    reject.job, reject.generation, reject.slot, code,
                    meaning_of(static_cast<sap::Rejection>(code)));
}

Error unanswered_error(const JobRoute& route, const Destination& by, const RoundTimer& timer,
                       uint64_t now_ns) {
  const double seconds = seconds_of(timer, now_ns);
  if (route.direct) {
    return make_error(Status::kTimeout, 0,
                      "in-network allreduce, without a switch: rank %u, which sums up a part, has "
                      "not answered for %.1f s; look at its log first",
                      by.index, seconds);
  }
  const std::string rail = route.rails > 1 ? " over rail " + std::to_string(by.rail) : "";
  return make_error(Status::kTimeout, 0,
                    "in-network allreduce: the switch has not answered%s for %.1f s (job %u, "
                    "generation %u, %u retransmissions in this round); check that it runs and "
                    "that UDP reaches it",
                    rail.c_str(), seconds, route.job, route.generation, timer.attempts - 1);
}

Error overdue_error(const std::string& missing, const RoundTimer& timer, uint64_t now_ns) {
  return make_error(Status::kRemote, 0,
                    "in-network allreduce: rank %s has not contributed for %.1f s; look at its log "
                    "first",
                    missing.c_str(), seconds_of(timer, now_ns));
}

}  // namespace slime
