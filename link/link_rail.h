// One rail of a link, at one end: its channel, its posting queue, and the state of its life.
//
//              fails, or the peer's does            the peer has fenced it too
//        kUp -------------------------> kFenced ------------------------------> kDown
//         ^                                ^                                      |
//         |                                | it fails, or the peer gives up       | a try begins,
//         |        both ends are connected |                                      | epoch + 1
//         +----------------------------- kJoining <-------------------------------+
//
// At the passive end a rail may also go from kDown to kFenced, if the channel of a try cannot be
// opened. It may stay kDown with epoch + 1, if the peer gave a try up before this end granted it.
//
// What makes reuse safe: both ends count the lives of a rail (epoch), and ignore notices about an
// earlier life. Once this end has fenced a channel, no write of the peer reaches memory over it.
// Works of an ended life are submitted again only when both ends have fenced it.
//
// Who changes what: LinkRails changes the queue, the rate, and the state to and from kUp (set_up,
// set_down). Failover changes the state to kDown. Rejoin changes the state to and from kJoining,
// the epoch and `join`. RailLiveness and Link change `signs`. Thread: that of the link.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "link/link_parts.h"
#include "link/post_queue.h"
#include "link/rail_rate.h"
#include "link/work_slots.h"
#include "transports/rail.h"

namespace slime {

// A control work about one rail that travels over another one. Of each kind one is under way at a
// time.
struct RailMessage {
  bool under_way = false;  // it is not known to have arrived
  bool lost = false;       // with the rail that carried it
};

// The return of a dead rail to its link: the time of the next try, and the state of the present
// one. The active end begins all tries.
struct RailJoin {
  uint64_t pause_ns = 0;     // before the next try
  uint64_t next_try_ns = 0;  // used by the active end
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

  // Each pause is twice as long as the one before, up to kMaxPauses times the first one.
  static constexpr uint64_t kMaxPauses = 60;
  void plan_next_try(uint64_t now_ns, uint64_t rail_retry_ns) {
    next_try_ns = now_ns + pause_ns;
    pause_ns = std::min(std::max(rail_retry_ns, 2 * pause_ns), kMaxPauses * rail_retry_ns);
  }
};

// The evidence that a rail works. Times are polled time (LinkClock).
struct RailSigns {
  uint32_t confirmed = 0;      // works queued or in flight whose arrival the peer's rail confirms
  uint64_t busy_since_ns = 0;  // since then there have been such works and none has completed
  // The latest sign that the peer's process polls its rails: an arrival, or a completion where the
  // peer's NIC does not confirm by itself.
  uint64_t heard_ns = 0;
  uint32_t quiet_polls = 0;  // polls in a row without an arrival
  uint64_t judged_ns = 0;    // when its silence was last judged
  uint64_t asked_ns = 0;     // when a probe asked for an answer that is still missing; 0: none
  uint64_t unproven_ns = 0;  // when the first unconfirmed work after the last probe was submitted
  uint64_t slow_since_ns =
      0;                   // since then it is slow (RailScheduler::warn_of_slow_rail); 0: it is not
  bool unproven = false;   // it has carried unconfirmed works since its last probe
  bool probing = false;    // a probe is under way
  bool answering = false;  // our answer to the peer's probe is under way
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
  unsigned interface() const { return rail->caps().interface; }
  uint64_t local_key(const MemoryRegion* region) const {
    return region->keys[device_rail_index].local;
  }
  uint64_t remote_key(const MemoryRegion* region) const {
    return region->keys[device_rail_index].remote;
  }
  // The port had a carrier and has lost it. Some interfaces work and never report a carrier.
  bool lacks_carrier() {
    const Carrier now = rail->carrier();
    had_carrier |= now == Carrier::kUp;
    return had_carrier && now == Carrier::kDown;
  }

  std::unique_ptr<Channel> channel;  // of the present life, or of the last life that had one
  Rail* rail;
  size_t device_rail_index;  // this rail's place in MemoryRegion::keys
  uint32_t speed_mbps;       // advertised by the slower end
  bool ordered;              // RailCaps::ordered
  bool confirmed_by_nic;     // RailCaps::confirms_in_hardware
  RailState state = RailState::kUp;
  bool peer_fenced = false;       // the peer has fenced this life
  bool had_carrier = false;       // its port has had a carrier at some time
  bool lost_carrier = false;      // lacks_carrier() was true at the last check
  bool carrier_returned = false;  // while the rail was dead; Rejoin clears it
  PostQueue queue;
  RailRate rate;      // of the present life; a link of one rail does not measure it
  uint64_t told = 0;  // our part of Device::outstanding
  RailSigns signs;
  WorkSlots works;           // of the present life, or of a life that both ends have not fenced yet
  uint32_t epoch = 0;        // of the present life; at kDown: of the one that has ended
  std::string down_because;  // why this life ended, until both ends have fenced it
  std::string outage;        // what the process calls the cause (Outages); empty: not down by one
  RailMessage notice;        // our kFenceNotice for this life
  uint64_t since_ns = 0;     // when the rail last became kUp, or left kUp
  RailJoin join;
};

}  // namespace slime
