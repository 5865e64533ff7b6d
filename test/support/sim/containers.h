// The queues and pools of the simulated network, and its source of random numbers. A queue or pool
// allocates only when it becomes larger than it was before.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
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
    for (size_t i = 0; i < count; ++i) larger[i] = items_[(head_ + i) & (items_.size() - 1)];
    items_.swap(larger);
    head_ = 0;
    tail_ = count;
  }

  std::vector<T> items_;  // size zero or a power of two
  size_t head_ = 0;
  size_t tail_ = 0;
};

using Index = uint32_t;
inline constexpr Index kNone = UINT32_MAX;

// Names one use of a place in a Pool. The place may be in use for something else by now.
struct Name {
  Index index = kNone;
  uint32_t generation = 0;  // of the place: how often it was given back
  bool operator==(const Name&) const = default;
};

// Objects with a `name` and in_use() that never move. The place that was given back last is used
// first.
template <typename T>
class Pool {
 public:
  // The caller fills in all but the name.
  T& take() {
    if (free_.empty()) {
      free_.push_back(static_cast<Index>(items_.size()));
      items_.emplace_back().name.index = free_.back();
    }
    T& item = items_[free_.back()];
    free_.pop_back();
    return item;
  }
  void give_back(T& item) {
    ++item.name.generation;
    free_.push_back(item.name.index);
  }
  T& operator[](Index index) { return items_[index]; }
  Index size() const { return static_cast<Index>(items_.size()); }
  // nullptr: it was given back.
  T* find(Name name) {
    const bool there = name.index < items_.size() && items_[name.index].name == name;
    return there ? &items_[name.index] : nullptr;
  }
  // Unused places are given out from now on in the order in which a new pool would create them.
  void order_free_places() {
    free_.clear();
    for (auto i = static_cast<Index>(items_.size()); i-- > 0;) {
      if (!items_[i].in_use()) free_.push_back(i);
    }
  }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }

 private:
  std::deque<T> items_;
  std::vector<Index> free_;
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
    if (buffer != nullptr) free_[size_class(bytes)].push_back(std::move(buffer));
  }

 private:
  static size_t size_class(uint32_t bytes) {
    return bytes <= 64 ? 6 : static_cast<size_t>(std::bit_width(bytes - 1));
  }
  std::array<std::vector<Buffer>, 33> free_;
};

// What will happen, by virtual time; of the same time, in the order of scheduling. An event whose
// write, endpoint or rail is gone by then has no effect.
struct Event {
  enum class Kind : uint8_t {
    kLeftWire,       // a work left the sender's wire
    kArrive,         // a work reached the receiver's NIC
    kConfirmed,      // the receiver's confirmation of a work reached the sender
    kRepeatSent,     // a kSent is queued a second time; payload: the cookie
    kRepeatArrived,  // a kArrived is queued a second time; payload: bytes << 32 | immediate
    kNotice,  // an end gets the notice that its channel failed; payload: reason << 1 | abrupt
    kDeath,   // a rail dies
  };
  uint64_t time_ns = 0;
  uint64_t sequence = 0;
  uint64_t payload = 0;
  Name name;  // of a write (the first three kinds), an endpoint, or a rail (kDeath)
  Kind kind = Kind::kLeftWire;

  bool operator>(const Event& other) const {
    return time_ns != other.time_ns ? time_ns > other.time_ns : sequence > other.sequence;
  }
  bool is_of_write() const { return kind <= Kind::kConfirmed; }
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
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }
  Event pop() {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const Event event = heap_.back();
    heap_.pop_back();
    return event;
  }
  void clear() {
    heap_.clear();
    sequence_ = 0;
  }

 private:
  std::vector<Event> heap_;
  uint64_t sequence_ = 0;
};

}  // namespace slime::sim
