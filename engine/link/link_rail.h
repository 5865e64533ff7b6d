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
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "engine/link/control_works.h"
#include "engine/link/link_parts.h"
#include "engine/link/post_queue.h"
#include "engine/link/rail_rate.h"
#include "transports/rail.h"

namespace slime {

// A control work about one rail that travels over another. One of a kind is under way at a time.
struct Errand {
  bool under_way = false;  // not known to have arrived
  size_t bearer = 0;       // the rail that it travels on
  uint64_t cookie = 0;
};

// The way of a dead rail back into its link: when to try, and the try under way.
struct RailJoin {
  uint64_t pause_ns = 0;     // before the next try
  uint64_t next_try_ns = 0;  // of the active end, which begins all tries
  uint64_t deadline_ns = 0;  // of the try under way
  uint64_t tried_ns = 0;     // when the latest try began
  Errand request;            // kJoin: our JoinRecord must stay as it is while it is under way
  Errand joined;             // kJoined
  Errand retry;              // kRetry
  ChannelAddress peer = {};
  bool asked = false;           // passive end: a request waits until it can be granted
  bool skipped = false;         // passive end: the peer gave a try up that never began here
  bool has_peer = false;        // `peer` is of this try
  bool connected = false;       // our end of the channel is
  bool peer_connected = false;  // the peer said that its end is
};

enum class RailState : uint8_t { kUp, kFenced, kDown, kJoining };

struct LinkRail {
  LinkRail(LinkChannel from, Rail* rail_in, const PostPolicy& policy)
      : channel(std::move(from.channel)),
        rail(rail_in),
        key_index(from.device_rail),
        speed_mbps(from.speed_mbps),
        ordered(rail_in->caps().ordered),
        confirmed_by_nic(rail_in->caps().confirms_in_hardware),
        queue(policy),
        rate(from.speed_mbps) {}

  bool up() const { return state == RailState::kUp; }
  // The port has lost the carrier that it had. Some interfaces never show one, and work.
  bool lacks_carrier() {
    const Carrier now = rail->carrier();
    had_carrier |= now == Carrier::kUp;
    return had_carrier && now == Carrier::kDown;
  }

  std::unique_ptr<Channel> channel;  // of the present life, or of the last that had one
  Rail* rail;
  size_t key_index;       // this rail's place in MemoryRegion::keys
  uint32_t speed_mbps;    // advertised by the slower end
  bool ordered;           // RailCaps::ordered
  bool confirmed_by_nic;  // RailCaps::confirms_in_hardware
  PostQueue queue;
  RailRate rate;             // of the present life; not kept by a link of one rail
  uint32_t quiet_polls = 0;  // in a row in which nothing arrived
  RailState state = RailState::kUp;
  uint32_t epoch = 0;        // of the present life; at kDown: of the one that has ended
  bool peer_fenced = false;  // the peer has fenced this life
  std::string down_because;  // why this life ended, until both ends have fenced it
  Errand notice;             // our kFenced for this life
  uint64_t since_ns = 0;     // when the rail became up, or ceased to be
  uint32_t confirmed = 0;    // works queued or in flight whose arrival the peer's rail confirms
  // Attended time (Link::attended_ns_).
  uint64_t busy_since_ns = 0;  // none of those has completed since, though there were some
  // When something last showed that the peer's process looks at its rails: an arrival, or a
  // completion where its NIC does not confirm by itself.
  uint64_t heard_ns = 0;
  uint64_t judged_ns = 0;      // when its silence was last judged
  bool probing = false;        // a probe is under way
  uint64_t asked_ns = 0;       // when a probe asked for an answer that has not come; 0: none did
  bool answering = false;      // our answer to the peer's is under way
  uint64_t unproven_ns = 0;    // when the first unconfirmed work after the last probe was submitted
  uint64_t slow_since_ns = 0;  // it has delivered less than half of its siblings; 0: it does not
  ControlWorks controls;
  bool had_carrier = false;   // its port has had a carrier
  bool lost_carrier = false;  // and had none when it was last looked at
  RailJoin join;
};

}  // namespace slime
