// One rail of a link, at one end: its channel, its posting queue, and what is known of it. Each
// part is a class that alone changes its state. Who asks it to: LinkRails begins and ends a life
// (set_up, set_down), Failover ends it for good, Rejoin does the rest. Rejoin alone changes `join`
// and `channel`, Failover `notice` and the texts (Rejoin takes `outage` when the rail returns),
// LinkRails `reads` and `told`, Link, Failover and Rejoin `is_sound`.
//
// Thread: that of the link.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "link/link_parts.h"
#include "link/rail/post_queue.h"
#include "link/rail/rail_carrier.h"
#include "link/rail/rail_join.h"
#include "link/rail/rail_rate.h"
#include "link/rail/rail_signs.h"
#include "link/rail/rail_state.h"
#include "link/rail/work_slots.h"
#include "transports/rail.h"

namespace slime {

// Its first members, used for each work, fill as few cache lines as they can.
struct alignas(64) LinkRail {
  LinkRail(LinkChannel from, Rail* rail_in, const PostPolicy& policy, uint64_t retry_ns,
           uint64_t now_ns)
      : channel(std::move(from.channel)),
        rail(rail_in),
        poller(from.poller),
        device_rail_index(from.device_rail_index),
        speed_mbps(from.speed_mbps),
        ordered(rail_in->caps().ordered),
        confirmed_by_nic(rail_in->caps().confirms_in_hardware),
        most_reads(std::min(rail_in->caps().max_outstanding_reads, policy.depth)),
        life(from.connected, now_ns),
        queue(policy),
        works(PostQueue::kCapacity + policy.depth, 0, policy.grows),
        rate(from.speed_mbps),
        carrier(*rail_in),
        retry(retry_ns) {}

  bool up() const { return life.up(); }
  const char* name() const { return rail->caps().name.c_str(); }
  unsigned interface() const { return rail->caps().interface; }
  uint64_t local_key(const MemoryRegion* region) const {
    return region->keys[device_rail_index].local;
  }
  uint64_t remote_key(const MemoryRegion* region) const {
    return region->keys[device_rail_index].remote;
  }

  // Of all channels so far.
  RailTotals totals() const {
    RailTotals all = past;
    all.add(snapshot(channel->counters));
    return all;
  }

  std::unique_ptr<Channel> channel;  // of the present life, or of the last life that had one
  Rail* rail;
  Poller* poller;            // of all its channels; nullptr: none
  size_t device_rail_index;  // this rail's place in MemoryRegion::keys
  uint32_t speed_mbps;       // advertised by the slower end
  bool ordered;              // RailCaps::ordered
  bool confirmed_by_nic;     // RailCaps::confirms_in_hardware
  uint32_t most_reads;       // RailCaps::max_outstanding_reads, or PostPolicy::depth if it is less
  uint32_t reads = 0;        // queued or in flight
  RailLifecycle life;
  PostQueue queue;
  WorkSlots works;    // of the present life, or of a life that both ends have not fenced yet
  RailRate rate;      // of the present life; a link of one rail does not measure it
  uint64_t told = 0;  // our part of Device::outstanding
  RailTotals past;    // of the channels before this one
  RailSigns signs;
  RailCarrier carrier;
  RetryPause retry;
  RailJoin join;
  std::string down_because;  // why this life ended, until both ends have fenced it
  std::string outage;        // what the process calls the cause (Outages); empty: not down by one
  RailMessage notice;        // our kFenceNotice for this life
  // Its life ends although it works: a work was refused, or an end wants memory back
  // (fence_rail()). So it may return at once.
  bool is_sound = false;
};

}  // namespace slime
