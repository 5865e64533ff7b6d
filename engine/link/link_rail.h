// One rail of a link, at one end: its channel and posting queue, and where it is in its life.
//
//              fails, or the peer's does            the peer has fenced it too
//        kUp -------------------------> kFenced ------------------------------> kDown
//         ^                                ^                                      |
//         |                                | it fails, or the peer gives up       | a try begins,
//         |        both ends are connected |                                      | epoch + 1
//         +----------------------------- kJoining <-------------------------------+
//
// At the passive end a try may also go from kDown to kFenced, if its channel cannot be opened, or
// stay kDown with epoch + 1, if the peer gave it up before it was granted.
//
// Both ends count the lives of a rail (epoch). What a notice says of an earlier life is ignored.
// Of the channel of an ended life nothing reaches memory any more once this end has fenced it; what
// it still owed is submitted again only when both ends have.
//
// Who changes what: LinkRails the queue, the rate, and kUp with its end (set_up, set_down);
// Failover kDown; Rejoin kJoining with its end, the epoch and `join`; RailLiveness and Link
// `signs`. Thread: that of the link.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "engine/link/control_works.h"
#include "engine/link/link_parts.h"
#include "engine/link/post_queue.h"
#include "engine/link/rail_rate.h"
#include "transports/rail.h"

namespace slime {

// A control work about one rail that travels over another. One of a kind is under way at a time.
struct RailMessage {
  bool under_way = false;  // not known to have arrived
  size_t via = 0;          // the rail that it travels over
  uint64_t work = 0;       // its WorkId

  void finish(size_t over, uint64_t finished) {
    if (via == over && work == finished) under_way = false;
  }
};

// The way of a dead rail back into its link: when to try, and the try under way.
struct RailJoin {
  uint64_t pause_ns = 0;     // before the next try
  uint64_t next_try_ns = 0;  // of the active end, which begins all tries
  uint64_t deadline_ns = 0;  // of the try under way
  uint64_t tried_ns = 0;     // when the latest try began
  RailMessage request;       // kJoin: our JoinRecord must stay as it is while it is under way
  RailMessage joined;        // kJoined
  RailMessage retry;         // kRetry
  ChannelAddress peer = {};
  bool asked = false;           // passive end: a request waits until it can be granted
  bool skipped = false;         // passive end: the peer gave a try up that never began here
  bool has_peer = false;        // `peer` is of this try
  bool connected = false;       // our end of the channel is
  bool peer_connected = false;  // the peer said that its end is

  // Each pause is twice as long as the one before it, and none longer than kMaxPauses first ones.
  static constexpr uint64_t kMaxPauses = 60;
  void plan_next_try(uint64_t now_ns, uint64_t rail_retry_ns) {
    next_try_ns = now_ns + pause_ns;
    pause_ns = std::min(std::max(rail_retry_ns, 2 * pause_ns), kMaxPauses * rail_retry_ns);
  }
};

// What shows that a rail lives. Times are polled time (LinkClock).
struct RailSigns {
  uint32_t confirmed = 0;      // works queued or in flight whose arrival the peer's rail confirms
  uint64_t busy_since_ns = 0;  // none of those has completed since, though there were some
  // When something last showed that the peer's process looks at its rails: an arrival, or a
  // completion where its NIC does not confirm by itself.
  uint64_t heard_ns = 0;
  uint32_t quiet_polls = 0;    // in a row in which nothing arrived
  uint64_t judged_ns = 0;      // when its silence was last judged
  uint64_t asked_ns = 0;       // when a probe asked for an answer that has not come; 0: none did
  uint64_t unproven_ns = 0;    // when the first unconfirmed work after the last probe was submitted
  uint64_t slow_since_ns = 0;  // it has delivered less than half of its siblings; 0: it does not
  bool unproven = false;       // it has carried unconfirmed works since its last probe
  bool probing = false;        // a probe is under way
  bool answering = false;      // our answer to the peer's is under way
};

enum class RailState : uint8_t { kUp, kFenced, kDown, kJoining };

struct LinkRail {
  LinkRail(LinkChannel from, Rail* rail_in, const PostPolicy& policy)
      : channel(std::move(from.channel)),
        rail(rail_in),
        device_rail_index(from.device_rail_index),
        speed_mbps(from.speed_mbps),
        ordered(rail_in->caps().ordered),
        confirmed_by_nic(rail_in->caps().confirms_in_hardware),
        queue(policy),
        rate(from.speed_mbps) {}

  bool up() const { return state == RailState::kUp; }
  bool dead() const { return state == RailState::kFenced || state == RailState::kDown; }
  const char* name() const { return rail->caps().name.c_str(); }
  uint64_t local_key(const MemoryRegion* region) const {
    return region->keys[device_rail_index].local;
  }
  uint64_t remote_key(const MemoryRegion* region) const {
    return region->keys[device_rail_index].remote;
  }
  // The port has lost the carrier that it had. Some interfaces never show one, and work.
  bool lacks_carrier() {
    const Carrier now = rail->carrier();
    had_carrier |= now == Carrier::kUp;
    return had_carrier && now == Carrier::kDown;
  }

  std::unique_ptr<Channel> channel;  // of the present life, or of the last that had one
  Rail* rail;
  size_t device_rail_index;  // this rail's place in MemoryRegion::keys
  uint32_t speed_mbps;       // advertised by the slower end
  bool ordered;              // RailCaps::ordered
  bool confirmed_by_nic;     // RailCaps::confirms_in_hardware
  RailState state = RailState::kUp;
  bool peer_fenced = false;       // the peer has fenced this life
  bool had_carrier = false;       // its port has had a carrier
  bool lost_carrier = false;      // and had none when it was last looked at
  bool carrier_returned = false;  // while it was dead; until Rejoin has seen it
  PostQueue queue;
  RailRate rate;  // of the present life; not kept by a link of one rail
  RailSigns signs;
  ControlWorks controls;
  uint32_t epoch = 0;        // of the present life; at kDown: of the one that has ended
  std::string down_because;  // why this life ended, until both ends have fenced it
  RailMessage notice;        // our kFenced for this life
  uint64_t since_ns = 0;     // when the rail became up, or ceased to be
  RailJoin join;
};

}  // namespace slime
