// What a link asks of the end that it belongs to: a sender or a receiver.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "engine/link/immediate.h"
#include "engine/link/link_parts.h"
#include "transports/rail.h"

namespace slime {

// Where the JoinRecords of a rail lie.
struct JoinRecordPlaces {
  const std::byte* from_peer;  // in our inbox
  const Outbox* outbox;
  size_t offset;  // of ours, in the outbox
};

class LinkEnd {
 public:
  virtual ~LinkEnd() = default;
  // A work of the peer arrived; of control works only kCredit, kSeen, kWanted.
  virtual Status on_arrived(size_t rail, uint32_t immediate, uint64_t bytes) = 0;
  // A work of ours is done. False: not expected (a repeated completion), nothing changed.
  virtual bool on_sent(const WorkId& work, uint64_t* bytes) = 0;
  // This end has fenced this life of a rail. A user whose peer needs a record of what arrived fills
  // in the write that takes it there over the rail `via`; the others leave `work` as it is.
  virtual void fence_record(const RailLife& life, size_t via, Work* work) = 0;
  // Both ends have fenced this life: submit again what the rail still owed.
  virtual Status on_both_fenced(const RailLife& life) = 0;
  virtual JoinRecordPlaces join_records(size_t rail) const = 0;
  // Fills in a write of kProbeBytes that shows what a rail delivers. An end that sends no stripes
  // leaves `work` as it is.
  virtual void fill_probe(size_t rail, Work* work) const = 0;
};

}  // namespace slime
