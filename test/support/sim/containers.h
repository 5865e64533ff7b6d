// Queues and pools of the simulated network, which allocate nothing once they have been as large
// before, and its source of random numbers.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace slime::sim {

// The seeded source of every choice the simulated network makes: same seed, same run, but for the
// values of memory keys.
//
// SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", 2014): one
// word of state, so that starting a schedule costs nothing.
class Random {
 public:
  explicit Random(uint64_t seed = 0) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // In [0, bound]; the tiny bias of the modulo does not matter here.
  uint64_t up_to(uint64_t bound) { return bound == UINT64_MAX ? next() : next() % (bound + 1); }
  // No draw where there is no choice: a model without faults stays as fast as it can be.
  bool chance(uint32_t per_million) { return per_million != 0 && next() % 1'000'000 < per_million; }
  bool coin() { return (next() & 1) != 0; }

 private:
  uint64_t state_;
};

// A first-in-first-out queue.
template <typename T>
class Ring {
 public:
  bool empty() const { return head_ == tail_; }
  size_t size() const { return tail_ - head_; }
  T& front() { return items_[head_ & (items_.size() - 1)]; }
  // In order of age; at(0) is the front.
  T& at(size_t index) { return items_[(head_ + index) & (items_.size() - 1)]; }
  void pop() { ++head_; }
  void clear() { head_ = tail_; }
  void push(const T& item) {
    if (size() == items_.size()) grow();
    items_[tail_++ & (items_.size() - 1)] = item;
  }

 private:
  void grow() {
    std::vector<T> larger(items_.empty() ? 16 : 2 * items_.size());
    const size_t count = size();
    for (size_t i = 0; i < count; ++i) larger[i] = at(i);
    items_.swap(larger);
    head_ = 0;
    tail_ = count;
  }

  std::vector<T> items_;  // size zero or a power of two
  size_t head_ = 0;
  size_t tail_ = 0;
};

// Copies of writes that are kSent before they arrive. Reused by size.
class BufferPool {
 public:
  using Buffer = std::unique_ptr<std::byte[]>;

  Buffer take(uint32_t bytes) {
    auto& free = free_[size_class(bytes)];
    if (free.empty()) return Buffer(new std::byte[size_t{1} << size_class(bytes)]);
    Buffer buffer = std::move(free.back());
    free.pop_back();
    return buffer;
  }
  void give_back(Buffer buffer, uint32_t bytes) {
    free_[size_class(bytes)].push_back(std::move(buffer));
  }

 private:
  static size_t size_class(uint32_t bytes) {
    return bytes <= 64 ? 6 : static_cast<size_t>(std::bit_width(bytes - 1));
  }
  std::array<std::vector<Buffer>, 33> free_;
};

// What will happen in the simulated network, by virtual time; ties in the order of scheduling.
struct Event {
  enum class Kind : uint8_t {
    kLeftWire,       // a work left the sender's wire
    kArrive,         // a work reached the receiver's NIC
    kConfirmed,      // the receiver's confirmation of a work reached the sender
    kRepeatSent,     // a kSent is queued a second time
    kRepeatArrived,  // a kArrived is queued a second time
    kNotice,         // an end of a channel learns that the channel failed
    kDeath,          // a rail dies
  };
  uint64_t time_ns = 0;
  uint64_t sequence = 0;
  uint64_t payload = 0;     // meaning by kind
  uint32_t index = 0;       // of a write (the first three kinds), an endpoint or a rail (kDeath)
  uint32_t generation = 0;  // of that; an event for an older one is void
  Kind kind = Kind::kLeftWire;

  bool is_of_write() const { return kind <= Kind::kConfirmed; }
  bool is_of_endpoint() const { return !is_of_write() && kind != Kind::kDeath; }
};

// A binary heap in one vector.
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
