// What the engines at both ends of a link ask and answer each other, about this link.
//
// States of a record: waiting for a slot of the ring, then as there (ring.h). Memory: what was sent
// and the ring has no slot for yet. Thread: that of the link.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "peer/ring.h"

namespace slime {

enum class RecordKind : uint16_t {
  kWantKeys = 1,  // peer/keys.h
  kKeys,
  kFarewell,     // payload: Rings::Counts; the sender has done with the link
  kAddress,      // payload: that of the sender's engine (peer_introduction.cc)
  kName,         // payload: that of the sender's engine
  kTaken,        // payload: Messages::Numbers
  kWantRegions,  // peer/directory.h
  kRegion,
};

class Records {
 public:
  explicit Records(Ring& ring) : ring_(ring) {}

  void send(RecordKind kind, std::span<const std::byte> payload) {
    waiting_.push_back({kind, {payload.begin(), payload.end()}});
    move();
  }
  // Puts into the ring what it has room for.
  void move() {
    for (; !waiting_.empty() && ring_.has_room(waiting_.front().payload.size());
         waiting_.pop_front()) {
      ring_.put(static_cast<uint16_t>(waiting_.front().kind), {waiting_.front().payload});
    }
  }
  bool idle() const { return waiting_.empty(); }  // none waits for a slot
  // So many records wait for slots that the caller of next() must not answer further ones yet.
  bool congested() const { return waiting_.size() >= Ring::kSlots; }
  // The next record of the peer, if it is here; its payload is valid until the next call.
  Result<std::optional<Record>> next() {
    auto record = ring_.look();
    if (record && *record) ring_.take();
    return record;
  }

 private:
  struct Waiting {
    RecordKind kind;
    std::vector<std::byte> payload;
  };

  Ring& ring_;
  std::deque<Waiting> waiting_;
};

}  // namespace slime
