// Finds works of the peer that the provider of this end has refused without an error at either end
// (Traits::refuses_silently).
//
// Each end reports to the other how many of its works its provider has completed. If an end has had
// fewer arrivals than that, and has found its completion queue empty several times since the
// report, its provider has dropped the rest.
//
// Thread: that of the channel.
#pragma once

#include <cstdint>
#include <optional>

namespace slime::fabric {

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
