// Finds works of the peer that the provider of this end has refused without a word
// (Traits::refuses_silently): no completion says so at either end.
//
// Each end tells the other how many of its works its provider has completed. An end that has had
// fewer arrivals than that, and has since found its completion queue empty several times, knows
// that its provider has dropped the rest.
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

  // How many works of this end are complete, where the peer is to be told. It is told when nothing
  // has completed since the last look, so a busy channel sends no counts.
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
  uint64_t seen_ = 0, reported_ = 0;  // complete works of this end: at the last look, and told
  uint64_t peer_completed_ = 0;       // as the peer has told
  uint32_t empty_reads_ = 0;          // since then
};

}  // namespace slime::fabric
