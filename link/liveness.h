// Finds the rails of a link that have died without an error, by probes, silence and carriers. It
// only reports them; Failover ends them.
//
// Only polled time counts (LinkClock), so an end that was stopped does not take its own pause for
// the death of a rail. A rail is given up only while another one is better, or where the link has a
// lifeline.
//
// Thread: that of the link. Its state is in the rails (RailSigns), except the time of the next
// check of carriers.
#pragma once

#include <optional>

#include "link/link_rails.h"

namespace slime {

class RailLiveness final : private WorkOwner {
 public:
  explicit RailLiveness(LinkRails& rails) : rails_(rails) {}

  // kPlain: the channel confirms it. kWithBytes: the same, and it measures the rail's rate. kAsk:
  // the peer's process must answer it.
  enum class Probe : uint8_t { kPlain, kWithBytes, kAsk };
  void probe(size_t rail, Probe probe);
  void answer(size_t rail);
  // Whether all that this rail has carried has arrived or can no longer be lost. If that is not
  // known, sends a probe and returns false.
  bool has_delivered(size_t rail);
  // Sends a probe on each rail whose unconfirmed works are old enough. `quiet_ones`: also on each
  // rail on which nothing has come or completed for 4 x rail_timeout.
  void prove_rails(bool quiet_ones);
  // For a rail with confirmed works: the reason why it counts as dead. nullopt: it does not (yet).
  // `alone_too`: although no other rail carries on.
  std::optional<Error> judge_silence(size_t rail, bool alone_too);
  bool carriers_due() const { return rails_.clock().now_ns >= carriers_due_ns_; }
  // Looks at the carriers of all rails. True: some rail that is up has a carrier, so the caller
  // gives up those that have lost theirs.
  bool look_at_carriers();

 private:
  // Of a probe or an answer; `part` is the rail, or the rail plus kOfAnswer.
  static constexpr uint32_t kOfAnswer = kMaxRails;
  void on_done(uint32_t part) override {
    RailSigns& signs = rails_[part % kOfAnswer].signs;
    part < kOfAnswer ? signs.end_probe() : signs.set_answering(false);
  }
  void on_lost(uint32_t) override {}  // the next life begins without them
  bool others_live(size_t rail);

  LinkRails& rails_;
  uint64_t carriers_due_ns_ = 0;
  bool warned_of_carriers_ = false;
};

}  // namespace slime
