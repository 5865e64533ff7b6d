// Whether the switch still answers a worker, rail by rail, and the errors about a switch that does
// not.
//
// States: well, or in trouble: the switch refuses this worker, has been silent for too long, or
// adds up wrongly. The trouble of a silent rail ends when a packet comes on that rail; any other
// stays until reset(), when the job has moved. While there is trouble, report() changes nothing:
// the first reason counts.
//
// Thread rules: one thread. No clock of its own: the caller gives the time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "collnet/worker/job_route.h"
#include "collnet/worker/retransmission.h"

namespace slime {

class SwitchHealth {
 public:
  SwitchHealth(uint64_t switch_timeout_ns, uint64_t suspect_ns)
      : switch_timeout_ns_(switch_timeout_ns), suspect_ns_(suspect_ns) {}

  // Observed time is the time in which this process was reading its sockets. Only that counts as
  // silence of the switch: a process that was stopped, by a debugger, a paused machine or a busy
  // one, has read nothing. Of a gap between two calls a quarter of the time-out counts at most, so
  // that a silence is found by several calls.
  void observe(uint64_t now_ns) {
    if (now_ns <= last_ns_) return;
    observed_ns_ += std::min(now_ns - last_ns_, switch_timeout_ns_ / 4);
    last_ns_ = now_ns;
  }
  uint64_t observed_ns() const { return observed_ns_; }  // to be compared with itself only
  void heard_on(uint32_t rail);
  // Packets that came while the worker was paused were dropped: silence counts from now on.
  void restart(uint64_t now_ns);
  // As restart(), for a job that runs elsewhere now.
  void reset(uint64_t now_ns);

  // `since`: in observed time, when this worker began to wait for an answer on that rail.
  bool is_silent(uint32_t rail, uint64_t since) const {
    return observed_ns_ - std::max(heard_[rail], since) >= switch_timeout_ns_;
  }
  void report(Error error);  // the first trouble counts
  void report_damage(Error error);
  // The switch has not answered on `rail`. `silent`: a bit for each of the `rails` on which it has
  // not answered some slot. This is trouble, too.
  void report_silence(uint32_t rail, uint32_t silent, uint32_t rails, Error error);

  const std::optional<Error>& trouble() const { return trouble_; }
  // The trouble is of damaged results, so packets come through both ways.
  bool is_damage() const { return damage_; }
  // A bit for each rail that was silent, at the last trouble, while others were not: the job can do
  // without these. 0: the last trouble was not of rails.
  uint32_t lost_rails() const { return lost_rails_; }

 private:
  void clear_trouble();

  const uint64_t switch_timeout_ns_, suspect_ns_;
  uint64_t last_ns_ = 0, observed_ns_ = 0;
  std::array<uint64_t, sap::kMaxRails> heard_{};  // last, by rail, in observed time
  std::optional<Error> trouble_;
  bool damage_ = false;
  std::optional<uint32_t> silent_rail_;  // that is the trouble
  uint32_t lost_rails_ = 0;
};

// The check of a result has failed, for the `times`-th time in this round.
Error damaged_error(const sap::Header& result, uint32_t times);
Error reject_error(const sap::Header& reject, uint32_t code);
// The destination `by`, a shard or a rank, has not answered a slot's contribution.
Error unanswered_error(const JobRoute& route, const Destination& by, const RoundTimer& timer,
                       uint64_t now_ns);
// The ranks `missing` have not contributed in time.
Error overdue_error(const std::string& missing, const RoundTimer& timer, uint64_t now_ns);

}  // namespace slime
