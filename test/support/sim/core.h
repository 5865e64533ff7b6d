// What all parts of the simulated network share: the ends of channels, the writes in flight, the
// clock, the events, the source of random numbers, and the counts that tests read.
#pragma once

#include <cstdint>
#include <string>

#include "test/support/sim/containers.h"
#include "test/support/sim/model.h"
#include "transports/rail.h"

namespace slime::sim {

class Rail;

struct Sent {
  uint64_t cookie = 0;
  bool repeat = false;
  bool refused = false;
};

struct Arrival {
  Index write = kNone;  // kNone: a repeat
  uint32_t immediate = 0;
  uint32_t bytes = 0;
};

// The works that one end has posted.
struct Sending {
  uint32_t in_flight = 0;         // in the pool
  uint32_t outstanding = 0;       // writes without a kSent or kRefused that poll() has returned
  uint32_t reads = 0;             // reads without a kSent or kRefused that poll() has returned
  uint64_t unreported_bytes = 0;  // kSent and not yet reported by the peer
  uint64_t last_arrival_ns = 0;   // the latest at the peer; ordered rails never go below it
  Ring<Sent> sent;                // kSent for poll() to return
  Ring<Index> withheld;           // writes that left the wire but do not fit the window
};

// One end of a channel. Its place in the pool outlives the Channel, because the peer and events
// refer to it. Channel sets open, paired and connected, in this order. Failures sets disconnected
// at both ends together; failed and fenced are of this end alone. None of these becomes false
// before the channel is closed.
struct Endpoint {
  Name name;
  Rail* rail = nullptr;
  ChannelOptions options;
  uint64_t nonce = 0;
  uint32_t retries_left = 0;  // how often connect() still returns kAgain for nothing
  Name peer;                  // from connect() on
  std::string peer_label;     // the same in words; outlives the peer
  bool open = false;
  bool paired = false;            // both ends have named each other
  bool connected = false;         // connect() has returned kOk
  bool disconnected = false;      // nothing new passes between the two ends
  bool failed = false;            // for the reason in `error`
  bool abrupt = false;            // the failure discards the kSent that poll() had still to return
  bool failure_returned = false;  // by poll()
  bool fenced = false;
  bool refused = false;  // a write: it takes nothing any more
  bool armed = false;    // its poller names it when there is something()
  Error error;

  Sending sending;
  Ring<Arrival> arrivals;  // kArrived for poll() to return
  RailCounters* counters = nullptr;

  bool in_use() const { return open; }
  // poll() would report this.
  bool something() const {
    return !sending.sent.empty() || !arrivals.empty() || (failed && !failure_returned);
  }
};

// What moves bytes from its sender to its receiver. A read is two of them: its request moves none,
// and then the peer sends the answer.
enum class Leg : uint8_t { kWrite, kRequest, kAnswer };

// A posted write, or the request or the answer of a read, until neither end needs it any more; see
// Writes.
struct InFlightWrite {
  Name name;
  Leg leg = Leg::kWrite;
  Work work;
  Name sender, receiver;
  uint64_t source_hash = 0;
  uint64_t order = 0;       // of posting, over all channels
  uint64_t arrives_ns = 0;  // due at the receiver
  BufferPool::Buffer copy;
  bool sender_waits = false;    // its kSent is still to come
  bool receiver_waits = false;  // its kArrived is still to be reported
  bool on_wire = false;         // still to reach the receiver
  bool delivered = false;       // its bytes are in the receiver's memory
  bool counted = false;         // in the sender's unreported_bytes
  bool refused = false;         // the peer has no such memory, or the reader's is gone

  bool moves_nothing() const { return work.length == 0 || leg == Leg::kRequest || refused; }
  bool in_use() const { return sender_waits || receiver_waits; }
};

struct Core {
  explicit Core(uint64_t seed) : random(seed) {}
  void schedule(uint64_t time_ns, Event::Kind kind, Name name, uint64_t payload = 0) {
    events.push({time_ns, 0, payload, name, kind});
  }

  uint64_t now_ns = 0;
  EventQueue events;
  Random random;
  Pool<Endpoint> ends;
  Pool<InFlightWrite> writes;
  Violations violations;
  Outcomes outcomes;
};

}  // namespace slime::sim
