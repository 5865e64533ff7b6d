// A simulated network in virtual time: the rails and channels of all hosts of a test, one clock,
// one queue of events, one seed. Single-threaded and deterministic; without allocation per work
// once it is warm. Time moves only by advance(), step() and the costs that a rail's model puts on
// post() and poll().
//
// Network has the clock, the events and the rails. Its parts share a Core: Channel sets up the ends
// of channels, Writes moves works between them, Failures ends them.
#pragma once

#include <memory>
#include <vector>

#include "base/clock.h"
#include "test/support/sim/writes.h"

namespace slime::sim {

class Network final : public Clock {
 public:
  explicit Network(uint64_t seed) : core_(seed) {}
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // The network must outlive its rails, and a rail its channels.
  std::unique_ptr<Rail> open_rail(const RailCaps& caps, const RailModel& model);

  uint64_t now_ns() const override { return core_.now_ns; }
  void advance_to(uint64_t time_ns);  // everything due by then happens, in order
  void advance(uint64_t ns) { advance_to(core_.now_ns + ns); }
  bool step();  // jumps to the next event; false: nothing will ever happen by itself
  bool idle() const { return core_.events.empty(); }

  // Starts over at time 0: rails stay, with their models and memory; dead ones live again. Open
  // channels are lost (kRemote). Nothing is freed, so that the next schedule allocates nothing.
  void reset(uint64_t seed);

  const Violations& violations() const { return core_.violations; }
  const Outcomes& outcomes() const { return core_.outcomes; }
  // Sources are hashed when posted and when read; off for benchmarks of large works.
  void check_sources(bool on) { writes_.check_sources(on); }

 private:
  friend class Channel;
  friend class Flusher;
  friend class Poller;
  friend class Rail;

  void run_due() {
    if (core_.events.next_ns() <= core_.now_ns) advance_to(core_.now_ns);
  }
  bool is_stale(const Event& event);
  void handle(const Event& event);

  Core core_;
  Writes writes_{core_, failures_};
  Failures failures_{core_, writes_};
  std::vector<Rail*> rails_;  // by id; nullptr: destroyed
};

}  // namespace slime::sim
