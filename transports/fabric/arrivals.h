// Works of the peer that have arrived, until poll() has returned them.
//
// States of an arrival
//   kept       it was in the completion queue, and waits for room in a poll()
//   returned   poll() has returned it; if the peer wants confirmations, its immediate waits in
//              to_confirm() until the channel has sent it
//   dropped    the peer has cancelled it, or this end is fenced: poll() never returns it
//
// Thread: that of the channel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "transports/channel_common.h"
#include "transports/rail.h"

namespace slime::fabric {

class Arrivals {
 public:
  // `most_cancelled`: works that the peer can have under way.
  explicit Arrivals(size_t most_cancelled) : most_cancelled_(most_cancelled) {}

  void confirm_to_peer() { confirms_ = true; }  // from its hello

  void add(uint32_t immediate, uint64_t bytes);
  // The peer may reuse the memory of its works with these immediates: they are dropped, whether
  // they are kept or still to come. False: the peer cannot have had so many under way.
  bool cancel(std::span<const uint32_t> immediates);
  // Returns kept ones in done[*count] and behind it.
  void take(std::span<Done> done, size_t* count, RailCounters& counters);
  void drop_kept() { kept_.clear(); }

  size_t kept() const { return kept_.size(); }
  uint64_t count() const { return count_; }  // since the beginning
  std::vector<uint32_t>& to_confirm() { return to_confirm_; }

 private:
  bool is_cancelled(uint32_t immediate);

  const size_t most_cancelled_;
  bool confirms_ = false;
  uint64_t count_ = 0;
  std::vector<Done> kept_;
  std::vector<uint32_t> to_confirm_;
  std::vector<uint32_t> cancelled_;  // immediates of works that are to be dropped
};

inline void Arrivals::add(uint32_t immediate, uint64_t bytes) {
  kept_.push_back(slime::arrived(immediate, bytes));
  ++count_;
}

inline bool Arrivals::cancel(std::span<const uint32_t> immediates) {
  if (cancelled_.size() + immediates.size() > most_cancelled_) return false;
  cancelled_.insert(cancelled_.end(), immediates.begin(), immediates.end());
  return true;
}

inline bool Arrivals::is_cancelled(uint32_t immediate) {
  const auto found = std::ranges::find(cancelled_, immediate);
  if (found == cancelled_.end()) return false;
  cancelled_.erase(found);
  return true;
}

inline void Arrivals::take(std::span<Done> done, size_t* count, RailCounters& counters) {
  size_t taken = 0;
  for (; taken < kept_.size() && *count < done.size(); ++taken) {
    const Done& arrival = kept_[taken];
    if (is_cancelled(arrival.immediate)) continue;
    counters.arrivals.add();
    counters.bytes_received.add(arrival.bytes);
    done[(*count)++] = arrival;
    if (confirms_) to_confirm_.push_back(arrival.immediate);
  }
  kept_.erase(kept_.begin(), kept_.begin() + static_cast<ptrdiff_t>(taken));
}

// Finds works of the peer that the provider of this end has refused without an error at either end
// (Traits::refuses_silently).
//
// Each end reports to the other how many of its works its provider has completed. If an end has had
// fewer arrivals than that, and has found its completion queue empty several times since the
// report, its provider has dropped the rest.
class RefusalWatch {
 public:
  // A write that comes later than this many empty reads of the completion queue was dropped.
  static constexpr uint32_t kEmptyReads = 16;
  static constexpr uint64_t kReportPauseNs = 20'000'000;

  // The count of complete works to send to the peer, if it is due: nothing has completed since the
  // call before, so a busy channel sends no counts.
  std::optional<uint64_t> count_to_report(uint64_t completed, uint64_t now_ns) {
    if (now_ns < report_due_ns_) return std::nullopt;
    report_due_ns_ = now_ns + kReportPauseNs;
    const bool rests = completed == seen_ && completed != reported_;
    seen_ = completed;
    if (!rests) return std::nullopt;
    reported_ = completed;
    return completed;
  }

  void peer_completed(uint64_t count) {
    peer_completed_ = count;
    empty_reads_ = 0;
  }
  void read_nothing() { ++empty_reads_; }

  // How many of the peer's works were refused, of which `arrivals` have arrived.
  uint64_t refused(uint64_t arrivals) const {
    const bool missing = arrivals < peer_completed_ && empty_reads_ >= kEmptyReads;
    return missing ? peer_completed_ - arrivals : 0;
  }

 private:
  uint64_t report_due_ns_ = 0;
  uint64_t seen_ = 0, reported_ = 0;  // complete works of this end: at the last call, and sent
  uint64_t peer_completed_ = 0;       // as the peer has reported
  uint32_t empty_reads_ = 0;          // since then
};

}  // namespace slime::fabric
