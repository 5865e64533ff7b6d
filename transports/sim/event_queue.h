// What will happen in the simulated network, by virtual time; ties in the order of scheduling.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace slime::sim {

struct Event {
  enum class Kind : uint8_t {
    kLeave,          // a work left the sender's wire
    kArrive,         // a work reached the receiver's NIC
    kConfirm,        // the receiver's word that it reported a work reached the sender
    kRepeatSent,     // a kSent is queued a second time
    kRepeatArrived,  // a kArrived is queued a second time
    kNotice,         // an end of a channel learns that the channel failed
    kDeath,          // a rail dies
  };
  uint64_t time_ns = 0;
  uint64_t sequence = 0;
  uint64_t payload = 0;     // meaning by kind
  uint32_t index = 0;       // of a flight, an endpoint or a rail
  uint32_t generation = 0;  // of that; an event for an older one is void
  Kind kind = Kind::kLeave;
};

// A binary heap in one vector: no allocation once it has been this large before.
class EventQueue {
 public:
  bool empty() const { return heap_.empty(); }
  const Event& next() const { return heap_.front(); }
  uint64_t next_ns() const { return heap_.empty() ? UINT64_MAX : heap_.front().time_ns; }
  void push(Event event) {
    event.sequence = ++sequence_;
    heap_.push_back(event);
    std::push_heap(heap_.begin(), heap_.end(), Later{});
  }
  Event pop() {
    std::pop_heap(heap_.begin(), heap_.end(), Later{});
    const Event event = heap_.back();
    heap_.pop_back();
    return event;
  }
  void clear() {
    heap_.clear();
    sequence_ = 0;
  }

 private:
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.sequence > b.sequence;
    }
  };
  std::vector<Event> heap_;
  uint64_t sequence_ = 0;
};

}  // namespace slime::sim
