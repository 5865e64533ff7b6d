// How all ranks leave a switch that is lost, in the middle of operations, and return to one that is
// back.
//
// States, the same at all ranks but for the time that a message takes:
//   idle        operations go on
//   announcing  the rank that notices pauses its workers and begins a gather in the ring. The other
//               ranks see the invitation (Ring::invited), pause, and join the gather, so that no
//               rank accepts a result any more. Each rank announces for every switch whether that
//               must be left, and how many operations it has started; it holds new ones until the
//               end. Rank 0 also announces a new job that it has got from a switch
//   comparing   a second gather: the epochs of all ranks' slots
// Then all ranks move the attachments that must move, and resume the others as they were
// (SwitchAttachment::move). As long as some switch is left, those that are lost get no part of the
// operations that no rank has started yet.
//
// Never waits. Thread rules: one thread, the communicator's.
#pragma once

#include "collnet/comm/ring.h"
#include "collnet/comm/switch_attachment.h"

namespace slime {

class Fallback {
 public:
  // All of these outlive it.
  Fallback(Ring& ring, const CommConfig& config, Attachments& attachments, Spread& spread)
      : ring_(ring), config_(config), attachments_(attachments), spread_(spread) {}

  bool idle() const { return stage_ == Stage::kIdle; }
  // Whether this rank, or one before it in the ring, has a reason to move.
  bool wanted(uint64_t now_ns) const;
  Result<void> begin();
  Result<void> step(uint64_t now_ns);  // until it is idle
  // Cuts the operations that no rank has started over the switches that are there.
  void spread_anew();

 private:
  enum class Stage : uint8_t { kIdle, kAnnouncing, kComparing };
  Result<void> compare_epochs();
  Result<void> move_all(uint64_t now_ns);

  Ring& ring_;
  const CommConfig& config_;
  Attachments& attachments_;
  Spread& spread_;
  Stage stage_ = Stage::kIdle;
  bool none_left_ = false;               // as of the last spread_anew(): no switch is left
  std::vector<Announcement> announced_;  // by rank, each by switch
  std::vector<uint32_t> epochs_;         // by rank, each by switch, each by slot
};

}  // namespace slime
