// A simulated network in virtual time: the rails and channels of all hosts of a test, one clock,
// one queue of events, one seed. Single-threaded and deterministic; without allocation per work
// once it is warm. Time moves only by advance(), step() and the costs that a rail's model puts on
// post() and poll().
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "transports/rail.h"
#include "test/support/sim/containers.h"
#include "test/support/sim/model.h"

namespace slime::sim {

class Rail;

using Index = uint32_t;
inline constexpr Index kNone = UINT32_MAX;

// Endpoints and writes live in pools. With a generation, an event may outlive what it is for.
struct Name {
  Index index = kNone;
  uint32_t generation = 0;
  bool operator==(const Name&) const = default;
};

// A posted work, until neither end needs it any more.
struct InFlightWrite {
  Work work;
  Name sender, receiver;
  uint64_t source_hash = 0;
  uint64_t order = 0;       // of posting, over all channels
  uint64_t arrives_ns = 0;  // due at the receiver
  BufferPool::Buffer copy;  // the bytes, once the source may change
  Index index = kNone;
  uint32_t generation = 0;
  bool sender_waits = false;    // its kSent is still to come
  bool receiver_waits = false;  // its kArrived is still to be reported
  bool on_wire = false;         // still to reach the receiver
  bool delivered = false;       // its bytes are in the receiver's memory
  bool counted = false;         // in the sender's unreported_bytes
};

struct Sent {
  uint64_t cookie = 0;
  bool repeat = false;
};

struct Arrival {
  Index write = kNone;  // kNone: a repeat, or a work whose channel has failed since
  uint32_t immediate = 0;
  uint32_t bytes = 0;
};

// Why an end of a channel failed; the sentence is made when it is known to whom.
enum class Reason : uint8_t { kPathDied, kPeerClosed, kPeerFenced, kWriteRefused };

// Why the works on their way stop, which decides what may still become of them.
enum class Cause : uint8_t { kDeath, kSenderClosed, kReceiverClosed, kRefused };

struct Endpoint {
  Name name;
  Rail* rail = nullptr;
  ChannelOptions options;
  uint64_t nonce = 0;
  uint32_t retries_left = 0;  // connect() says kAgain this often for nothing
  Name peer;                  // once connect() was called
  std::string peer_label;     // the same in words; outlives the peer
  bool open = false;
  bool paired = false;            // both ends have named each other
  bool connected = false;         // and connect() has said so here
  bool disconnected = false;      // nothing new passes between the two ends
  bool failed = false;            // this end knows of its failure: see error
  bool abrupt = false;            // the failure hides what poll() had still to report
  bool failure_returned = false;  // by post() or poll()
  bool fenced = false;
  Error error;

  uint32_t in_flight = 0;         // works of ours in the pool
  uint32_t outstanding = 0;       // works posted whose kSent poll() has not returned
  uint64_t unreported_bytes = 0;  // kSent and not yet reported by the peer
  uint64_t last_arrival_ns = 0;   // of our works at the peer; ordered rails never go below it
  Ring<Sent> sent;                // kSent for poll() to return
  Ring<Index> withheld;           // writes that left the wire but do not fit the window
  Ring<Arrival> arrivals;         // kArrived for poll() to return
  RailCounters* counters = nullptr;
};

class Network final : public Clock {
 public:
  explicit Network(uint64_t seed) : random_(seed) {}
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // The network must outlive its rails, and a rail its channels.
  std::unique_ptr<Rail> open_rail(const RailCaps& caps, const RailModel& model);

  uint64_t now_ns() const override { return now_ns_; }
  void advance_to(uint64_t time_ns);  // everything due by then happens, in order
  void advance(uint64_t ns) { advance_to(now_ns_ + ns); }
  bool step();  // jumps to the next event; false: nothing will ever happen by itself
  bool idle() const { return events_.empty(); }

  // Starts over at time 0: rails stay, with their models and memory; dead ones live again. Open
  // channels are lost (kRemote). Nothing is freed, so that the next schedule allocates nothing.
  void reset(uint64_t seed);

  const Violations& violations() const { return violations_; }
  const Outcomes& outcomes() const { return outcomes_; }
  uint64_t events() const { return events_done_; }
  // Sources are hashed when posted and when read; off for benchmarks of large works.
  void check_sources(bool on) { check_sources_ = on; }

 private:
  friend class Channel;
  friend class Flusher;
  friend class Rail;

  // network.cc: the ends of channels.
  Endpoint& open_endpoint(Rail& rail, const ChannelOptions& options, RailCounters* counters);
  void close_endpoint(Endpoint& end);
  Endpoint* find(Name name);
  Status connect(Endpoint& end, const ChannelAddress& address);
  Status connect_to(Endpoint& end, Endpoint& peer);

  // writes.cc: from post() to both ends' completions.
  bool post_one(Endpoint& end, const Work& work);
  void put_on_wire(Endpoint& end, const Endpoint& peer, const Work& work);
  uint64_t plan_arrival(Endpoint& end, const Endpoint& peer, uint64_t left_ns);
  void leave_wire(InFlightWrite& write);
  void mark_sent(Endpoint& sender, InFlightWrite& write);
  void release_withheld(Endpoint& sender);
  void arrive(InFlightWrite& write);
  bool deliver(Endpoint& receiver, InFlightWrite& write);
  bool report(Endpoint& end, Done* done);
  void reported(const Endpoint& end, InFlightWrite& write);
  void schedule_confirmation(const Endpoint& receiver, const InFlightWrite& write);
  void confirm(InFlightWrite& write);
  void repeat_later(Event::Kind kind, uint32_t ppm, const Endpoint& end, uint64_t payload);

  // Works and their sources (writes.cc).
  InFlightWrite& new_write(Endpoint& sender, const Endpoint& receiver, const Work& work);
  void end_write(InFlightWrite& write);
  void end_if_done(InFlightWrite& write);
  const std::byte* source_of(const InFlightWrite& write);  // nullptr: it is not there any more
  bool keep_copy(InFlightWrite& write);
  void drop_arrival(Endpoint& end);
  void drop_undelivered(Endpoint& end);

  // failures.cc
  void kill(Rail& rail);
  void fence(Endpoint& end);
  void disconnect(Endpoint& end, Endpoint& peer, Reason reason);
  void refuse_write(Endpoint& receiver, const InFlightWrite& write);
  void fail_source(Endpoint& sender, const Work& work);
  void fail_locally(Endpoint& end, Error error);
  Status fail(Endpoint& end, bool abrupt, Error error);  // the error without its rail
  void schedule_notice(const Endpoint& end, uint64_t at_ns, Reason reason, bool abrupt);
  void learn_failure(Endpoint& end, Reason reason, bool abrupt);
  void resolve(Endpoint& sender, Cause cause);
  void resolve_on_wire(Endpoint& sender, Cause cause);
  void resolve_arrived(InFlightWrite& write, Cause cause);
  void let_arrive(InFlightWrite& write, bool at_once, uint64_t extra_ns);
  void drop(InFlightWrite& write, bool may_tear);
  uint64_t latency_ns(const Endpoint& end, const Endpoint& peer) const;

  void run_due() {
    if (events_.next_ns() <= now_ns_) advance_to(now_ns_);
  }
  void charge(uint64_t ns) { advance_to(now_ns_ + ns); }
  bool is_stale(const Event& event);
  void handle(const Event& event);
  void handle_write(const Event& event);
  void handle_endpoint(const Event& event);
  void schedule(uint64_t time_ns, Event::Kind kind, Name name, uint64_t payload = 0) {
    events_.push({time_ns, 0, payload, name.index, name.generation, kind});
  }
  void refill_pools();
  void forget_rail(const Rail& rail);
  void schedule_death(const Rail& rail);

  Random random_;
  uint64_t now_ns_ = 0;
  EventQueue events_;
  uint64_t events_done_ = 0;
  uint64_t orders_ = 0;
  bool check_sources_ = true;
  Violations violations_;
  Outcomes outcomes_;
  BufferPool buffers_;
  std::vector<Rail*> rails_;        // by id; nullptr: destroyed
  std::deque<Endpoint> endpoints_;  // deques: what is inside never moves
  std::vector<Index> free_endpoints_;
  std::deque<InFlightWrite> writes_;
  std::vector<Index> free_writes_;
  std::vector<InFlightWrite*> scratch_;  // of resolve()
};

}  // namespace slime::sim
