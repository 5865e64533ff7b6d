// The return of a dead rail to its link: when the next try is due, and the state of the present
// one. Thread: that of the link.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "transports/rail.h"

namespace slime {

// When to try again. Each pause is twice as long as the one before, up to kMostPauses first ones.
class RetryPause {
 public:
  static constexpr uint64_t kMostPauses = 60;

  explicit RetryPause(uint64_t first_ns) : first_ns_(first_ns), pause_ns_(first_ns) {}

  void start_again() { pause_ns_ = first_ns_; }  // short pauses, after a long life
  void plan(uint64_t now_ns) {
    next_ns_ = now_ns + pause_ns_;
    pause_ns_ = std::min(std::max(first_ns_, 2 * pause_ns_), kMostPauses * first_ns_);
  }
  void plan_soon(uint64_t at_ns) {
    pause_ns_ = 0;
    next_ns_ = at_ns;
  }
  uint64_t next_ns() const { return next_ns_; }
  bool due(uint64_t now_ns) const { return first_ns_ > 0 && now_ns >= next_ns_; }

 private:
  const uint64_t first_ns_;  // NCCL_SLIME_RAIL_RETRY; 0: never
  uint64_t pause_ns_;
  uint64_t next_ns_ = 0;
};

// A control work about one rail that travels over another one.
struct RailMessage {
  bool under_way = false;  // it is not known to have arrived
  bool lost = false;       // with the rail that carried it
};

// Only Rejoin changes it. Of kJoin and kRetry one is under way at a time, of kJoined one for each
// try.
struct RailJoin {
  uint64_t deadline_ns = 0;  // of the try under way
  uint64_t tried_ns = 0;     // when the latest try began
  // kJoin (our JoinRecord must not change while it is under way), kJoined, and kRetry.
  enum Message : uint32_t { kRequest, kJoined, kRetry };
  std::array<RailMessage, 3> messages;
  ChannelAddress peer = {};
  bool asked = false;           // passive end: a request waits until it can be granted
  bool skipped = false;         // passive end: the peer gave a try up that never began here
  bool has_peer = false;        // `peer` belongs to this try
  bool connected = false;       // our end of the channel is connected
  bool peer_connected = false;  // the peer reported that its end is connected
};

}  // namespace slime
