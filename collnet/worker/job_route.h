// Where a job's packets go, and by what they are recognised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "switch/protocol/sap.h"
#include "switch/protocol/slot_machine.h"

namespace slime {

// A shard of the switch, over one of our rails; or another worker, from rail 0 to rail 0.
struct Destination {
  enum class Kind : uint8_t { kShard, kRank };
  Kind kind = Kind::kShard;
  uint32_t index = 0;
  uint32_t rail = 0;
  bool operator==(const Destination&) const = default;
};

class Datagrams {
 public:
  virtual ~Datagrams() = default;
  virtual void send(const Destination& to, std::span<const std::byte> datagram) = 0;  // may lose it
};

// Changes when a job goes on elsewhere: without its switch, or on one again.
struct JobRoute {
  uint16_t job = 0;
  uint8_t generation = 0;
  uint32_t token = 0;   // of this generation
  bool direct = false;  // without a switch: rank s mod ranks serves slot s
  uint32_t shards = 1;  // slot s is served on port (that of shard 0) + s mod shards
  uint32_t rails = 1;   // local addresses towards the switch; slot s uses that of sap::rail_of

  bool names(const sap::Header& header) const {
    return header.job == job && header.generation == generation;
  }
  bool operator==(const JobRoute&) const = default;
  uint32_t rail_of(uint32_t slot) const { return sap::rail_of(slot, shards, rails); }
  Destination served_by(uint32_t slot, uint32_t ranks) const {
    if (direct) return {Destination::Kind::kRank, slot % ranks, 0};
    return {Destination::Kind::kShard, slot % shards, rail_of(slot)};
  }
  sap::Header header(sap::Type type, uint8_t child, uint32_t slot,
                     uint32_t epoch = sap::kFirstEpoch) const {
    return {.type = type,
            .job = job,
            .generation = generation,
            .child = child,
            .token = token,
            .slot = static_cast<uint16_t>(slot),
            .epoch = epoch};
  }
};

}  // namespace slime
