// Finds out whether the peer's process still works while a request waits for it: its engine must
// answer a probe. Rails cannot tell: the kernel of the peer's host acknowledges for a process that
// is stopped, and for one that has ended while a process that it forked holds its connections.
//
// States: quiet -> asked (since asked_ns_) -> warned (after peer_timeout) -> the link fails (after
// answer_timeout, or request_timeout where that is 0). Any sign of the peer's process leads back to
// quiet.
//
// Only links of several rails ask, because only these answer while their process computes: the
// housekeeper advances them then (comm_progress.h). Times are polled time. Thread: that of the
// link.
#pragma once

#include <cstdint>
#include <optional>

#include "link/liveness.h"

namespace slime {

class PeerWatch {
 public:
  PeerWatch(LinkRails& rails, RailLiveness& liveness);

  // A request has to wait for so long before the first look.
  uint64_t patience_ns() const { return patience_ns_; }
  // Call it while a request waits. An error: the peer counts as dead.
  std::optional<Error> look();

 private:
  void ask();
  void be_quiet();
  void warn() const;

  LinkRails& rails_;
  RailLiveness& liveness_;
  const uint64_t patience_ns_;
  const double limit_s_;
  const char* const limit_name_;  // the setting that it comes from
  uint64_t asked_ns_ = 0;         // 0: quiet
  uint64_t ask_again_ns_ = 0;
  bool warned_ = false;
};

}  // namespace slime
