// What the network keeps per work and per end of a channel. Both live in pools and are named by
// index and generation, so that an event can outlive what it was meant for.
#pragma once

#include <cstdint>
#include <string>

#include "transports/rail.h"
#include "transports/sim/buffers.h"
#include "transports/sim/ring.h"

namespace slime::sim {

class Rail;

using Index = uint32_t;
inline constexpr Index kNone = UINT32_MAX;

struct Name {
  Index index = kNone;
  uint32_t generation = 0;
  bool operator==(const Name&) const = default;
};

// A posted work, until neither end needs it any more.
struct Flight {
  Work work;
  Name sender, receiver;
  uint64_t source_hash = 0;
  uint64_t order = 0;       // of posting, over all channels
  uint64_t arrives_ns = 0;  // due at the receiver
  Buffers::Buffer copy;     // the bytes, once the source may change
  Index index = kNone;
  uint32_t generation = 0;
  bool sender_waits = false;    // its kSent is still to come
  bool receiver_waits = false;  // its kArrived is still to be reported
  bool on_wire = false;         // still to reach the receiver
  bool landed = false;          // its bytes are in the receiver's memory
  bool counted = false;         // in the sender's unreported_bytes
};

struct Sent {
  uint64_t cookie = 0;
  bool repeat = false;
};

struct Arrival {
  Index flight = kNone;  // kNone: a repeat, or a work whose channel has failed since
  uint32_t immediate = 0;
  uint32_t bytes = 0;
};

// Why an end of a channel failed; the sentence is made when it is known to whom.
enum class Reason : uint8_t { kPathDied, kPeerClosed, kPeerFenced, kWriteRefused };

// Why the works on their way stop, which decides what may still become of them.
enum class Cause : uint8_t { kDeath, kSenderLeft, kReceiverLeft, kRefused };

struct Endpoint {
  Name name;
  Rail* rail = nullptr;
  ChannelOptions options;
  uint64_t nonce = 0;
  uint32_t retries_left = 0;  // connect() says kAgain this often for nothing
  Name peer;                  // once connect() was called
  std::string peer_label;     // the same in words; outlives the peer
  bool open = false;
  bool paired = false;     // both ends have named each other
  bool connected = false;  // and connect() has said so here
  bool cut = false;        // nothing new passes between the two ends
  bool noticed = false;    // this end knows of its failure: see error
  bool abrupt = false;     // the failure hides what poll() had still to report
  bool told = false;       // post() or poll() have returned the failure
  bool fenced = false;
  Error error;

  uint32_t flights = 0;           // works of ours in the pool
  uint32_t outstanding = 0;       // works posted whose kSent poll() has not returned
  uint64_t unreported_bytes = 0;  // kSent and not yet reported by the peer
  uint64_t last_arrival_ns = 0;   // of our works at the peer; ordered rails never go below it
  Ring<Sent> sent;                // kSent for poll() to return
  Ring<Index> withheld;           // flights that left the wire but do not fit the window
  Ring<Arrival> arrivals;         // kArrived for poll() to return
  RailCounters* counters = nullptr;
};

}  // namespace slime::sim
