// The main loop of a program that writes pages over a few NICs, with the flags of one row: the
// loops of the libfabric-efa-demo (chapters 7 to 15) and what can be added to them.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "bench/posting/model.h"
#include "bench/posting/world.h"

namespace slime::bench {

class Group {
 public:
  Group(const Flags& flags, World& world, uint32_t first_nic, uint32_t nics);
  ~Group();

  void turn();             // one turn of the loop: poll every NIC, post what waits, make new works
  bool saturated() const;  // the send queue of each NIC has been full
  uint64_t completed() const { return completed_; }
  uint64_t depth_max() const { return depth_max_; }

 private:
  struct Op {  // as the demo's RdmaOp: from submission to completion, with its callback's state
    Work work;
    Group* group;
  };
  struct Queue {
    std::deque<Op*> heap;          // !pool
    std::unique_ptr<Work[]> ring;  // pool
    uint32_t head = 0, tail = 0;
    uint32_t in_flight = 0, most_in_flight = 0;
  };
  static constexpr uint32_t kRingCapacity = 4096;

  uint32_t waiting(const Queue& queue) const;
  void make_work();
  void poll(uint32_t nic);
  size_t poll_once(uint32_t nic, size_t most);
  void post(uint32_t nic);
  bool hold_back(const Queue& queue) const;
  uint32_t post_some(uint32_t nic, uint32_t most);

  const Flags flags_;
  World& world_;
  const uint32_t first_nic_;
  std::vector<Queue> queues_;
  uint32_t next_nic_ = 0;
  uint64_t waiting_ = 0;      // in all queues
  uint64_t outstanding_ = 0;  // waiting or in flight
  uint64_t completed_ = 0;
  uint64_t depth_max_ = 0;
};

}  // namespace slime::bench
