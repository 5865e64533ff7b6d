// A simulated network in virtual time: the rails and channels of all hosts of a test, one clock,
// one queue of events, one seed. Single-threaded and deterministic; without allocation per work
// once it is warm. Time moves only by advance(), step() and the costs that a rail's model puts on
// post() and poll().
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "transports/rail.h"
#include "transports/sim/event_queue.h"
#include "transports/sim/model.h"
#include "transports/sim/parts.h"
#include "transports/sim/random.h"

namespace slime::sim {

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
  const Fates& fates() const { return fates_; }
  uint64_t events() const { return events_done_; }
  // Sources are hashed when posted and when read; off for benchmarks of large works.
  void check_sources(bool on) { check_sources_ = on; }

 private:
  friend class Channel;
  friend class Flusher;
  friend class Rail;

  // Ends of channels (connect.cc).
  Endpoint& open_endpoint(Rail& rail, const ChannelOptions& options, RailCounters* counters);
  void close_endpoint(Endpoint& end);
  Endpoint* find(Name name);
  Status connect(Endpoint& end, const ChannelAddress& address);
  Status connect_to(Endpoint& end, Endpoint& peer);

  // The way of a work (works.cc).
  bool launch(Endpoint& end, const Work& work);
  void take_off(Endpoint& end, const Endpoint& peer, const Work& work);
  uint64_t plan_arrival(Endpoint& end, const Endpoint& peer, uint64_t left_ns);
  void leave(Flight& flight);
  void mark_sent(Endpoint& sender, Flight& flight);
  void release_withheld(Endpoint& sender);
  void arrive(Flight& flight);
  bool land(Endpoint& receiver, Flight& flight);
  bool report(Endpoint& end, Done* done);
  void reported(const Endpoint& end, Flight& flight);
  void schedule_confirmation(const Endpoint& receiver, const Flight& flight);
  void confirm(Flight& flight);
  void repeat_later(Event::Kind kind, uint32_t ppm, const Endpoint& end, uint64_t payload);

  // Works and their sources (flights.cc).
  Flight& new_flight(Endpoint& sender, const Endpoint& receiver, const Work& work);
  void end_flight(Flight& flight);
  void end_if_done(Flight& flight);
  const std::byte* source_of(const Flight& flight);  // nullptr: it is not there any more
  bool keep_copy(Flight& flight);
  void drop_arrival(Endpoint& end);
  void drop_unlanded(Endpoint& end);

  // Failures (failures.cc, fates.cc).
  void kill(Rail& rail);
  void fence(Endpoint& end);
  void part(Endpoint& end, Endpoint& peer, Reason reason);
  void refuse(Endpoint& receiver, const Flight& flight);
  void lose_source(Endpoint& sender, const Work& work);
  void break_locally(Endpoint& end, Error error);
  void fail(Endpoint& end, bool abrupt, Error error);
  void notify(const Endpoint& end, uint64_t at_ns, Reason reason, bool abrupt);
  void notice(Endpoint& end, Reason reason, bool abrupt);
  void settle(Endpoint& sender, Cause cause);
  void settle_on_wire(Endpoint& sender, Cause cause);
  void settle_arrived(Flight& flight, Cause cause);
  void survive(Flight& flight, bool at_once, uint64_t extra_ns);
  void lose(Flight& flight, bool may_tear);
  uint64_t latency_ns(const Endpoint& end, const Endpoint& peer) const;

  void run_due() {
    if (events_.next_ns() <= now_ns_) advance_to(now_ns_);
  }
  void charge(uint64_t ns) { advance_to(now_ns_ + ns); }
  bool is_void(const Event& event);
  void handle(const Event& event);
  void handle_flight(const Event& event);
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
  Fates fates_;
  Buffers buffers_;
  std::vector<Rail*> rails_;        // by id; nullptr: destroyed
  std::deque<Endpoint> endpoints_;  // deques: what is inside never moves
  std::vector<Index> free_endpoints_;
  std::deque<Flight> flights_;
  std::vector<Index> free_flights_;
  std::vector<Flight*> scratch_;  // of settle()
};

}  // namespace slime::sim
