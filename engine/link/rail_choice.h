// Which rail a work goes over, by what is known of the rails.
//
// A rail's time to done is its latency, and the time that its rate needs for what is outstanding on
// it and for the work. Small messages, and those that are not cut, take the rail with the least. A
// stripe of a large message does too, but is posted only when the rail's window has room; until
// then it waits with the others, and may go over another rail that has room, if that is done before
// the better rails would be done with all that waits. So rails that are never idle share large
// messages by what they deliver, whatever they advertise, and the last stripes do not wait for a
// slow one. docs/striping.md draws it.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "engine/link/records.h"

namespace slime {

struct RailLoad {
  double ns_per_byte = 0;
  double latency_ns = 0;
  uint64_t outstanding = 0;  // bytes waiting or in flight
  uint64_t window = 0;
  bool up = false;

  double done_ns(uint64_t bytes) const {
    return latency_ns + static_cast<double>(outstanding + bytes) * ns_per_byte;
  }
  // One work more than is in flight always has room: a rail shall not stand between two.
  bool has_room(uint64_t bytes) const { return outstanding < window || outstanding <= bytes; }
};

inline constexpr size_t kNoRail = SIZE_MAX;

// For a stripe, the first of `waiting` bytes. kNoRail: it waits.
inline size_t rail_with_room(std::span<const RailLoad> rails, uint64_t bytes, uint64_t waiting) {
  size_t chosen = kNoRail;
  double chosen_ns = 0, best_ns = 0;
  for (size_t i = 0; i < rails.size(); ++i) {
    if (!rails[i].up) continue;
    const double ns = rails[i].done_ns(bytes);
    if (best_ns == 0 || ns < best_ns) best_ns = ns;
    if (!rails[i].has_room(bytes) || (chosen != kNoRail && ns >= chosen_ns)) continue;
    chosen = i;
    chosen_ns = ns;
  }
  if (chosen == kNoRail || chosen_ns <= best_ns) return chosen;
  // The better rails have no room. Together they are done with all that waits after:
  double rate = 0, bytes_left = static_cast<double>(waiting);
  for (const RailLoad& rail : rails) {
    if (!rail.up || rail.done_ns(bytes) >= chosen_ns) continue;
    rate += 1 / rail.ns_per_byte;
    bytes_left += static_cast<double>(rail.outstanding) + rail.latency_ns / rail.ns_per_byte;
  }
  return chosen_ns * rate <= bytes_left ? chosen : kNoRail;
}

// The loads of the rails of a link. Each small message and each stripe looks at all of them, so
// what that needs lies in arrays beside them, and four rails are looked at in one step.
class RailLoads {
 public:
  RailLoads() { ready_ns_.fill(kNever); }

  size_t size() const { return size_; }
  const RailLoad& operator[](size_t rail) const { return loads_[rail]; }
  std::span<const RailLoad> all() const { return std::span(loads_).first(size_); }

  void add() { ++size_; }
  void set(size_t rail, const RailLoad& load) {
    loads_[rail] = load;
    ns_per_byte_[rail] = static_cast<float>(load.ns_per_byte);
    ready_ns_[rail] = load.up ? static_cast<float>(load.done_ns(0)) + kLeastNs : kNever;
  }
  // Stores all four rails of a step: the next choice would wait for a store that is narrower than
  // its load.
  void submitted(size_t rail, uint32_t bytes) {
    loads_[rail].outstanding += bytes;
    const float more_ns = static_cast<float>(bytes) * ns_per_byte_[rail];
    float* const step = &ready_ns_[rail & ~(kLanes - 1)];
    const Keys is_rail = kFirst == static_cast<int32_t>(rail & (kLanes - 1));
    const Floats sum =
        load(step) + std::bit_cast<Floats>(std::bit_cast<Keys>(Floats{} + more_ns) & is_rail);
    std::memcpy(step, &sum, sizeof sum);
  }

  // For a small message. The preferred rail is that of the last one: warm at both ends, so another
  // must be better by an eighth.
  size_t quickest(uint64_t bytes, size_t preferred) const {
    const float length = to_float(bytes);
    const size_t rail = least(length);
    if (rail == kNoRail) return kNoRail;
    return done_ns(preferred, length) * (7.0F / 8) <= done_ns(rail, length) ? preferred : rail;
  }

  // As rail_with_room(), which is needed only where the rail that is done first has no room.
  size_t with_room(uint64_t bytes, uint64_t waiting) const {
    const size_t rail = least(to_float(bytes));
    if (rail == kNoRail || loads_[rail].has_room(bytes)) return rail;
    return rail_with_room(all(), bytes, waiting);
  }

 private:
  // Vectors of GCC and clang, for any processor. A key is a rail's time to done and its index in
  // one float: its lowest bits, which change it by less than 4 in a million, hold the index.
  static constexpr size_t kLanes = 4;
  using Floats = float __attribute__((vector_size(kLanes * sizeof(float))));
  using Keys = int32_t __attribute__((vector_size(kLanes * sizeof(int32_t))));
  static constexpr Keys kFirst = {0, 1, 2, 3};
  static constexpr int32_t kIndexMask = 31;
  static_assert(kMaxRails <= kIndexMask + 1 && kMaxRails % (2 * kLanes) == 0);
  static constexpr float kNever = 1e30F;
  // Added to all: 0 with an index would be a denormal, which some programs have flushed to 0.
  static constexpr float kLeastNs = 1;

  static Floats load(const float* from) {
    Floats lanes;
    std::memcpy(&lanes, from, sizeof lanes);
    return lanes;
  }
  static float to_float(uint64_t bytes) { return static_cast<float>(static_cast<int64_t>(bytes)); }
  static Floats lesser(Floats a, Floats b) { return a < b ? a : b; }

  float done_ns(size_t rail, float length) const {
    return ready_ns_[rail] + ns_per_byte_[rail] * length;
  }
  Floats keys(size_t first, float length) const {
    const Floats done = load(&ready_ns_[first]) + load(&ns_per_byte_[first]) * length;
    const Keys index = kFirst + static_cast<int32_t>(first);
    return std::bit_cast<Floats>((std::bit_cast<Keys>(done) & ~kIndexMask) | index);
  }
  // The rail that is done first with `length` bytes. Places beyond size_ are never done.
  size_t least(float length) const {
    Floats even = keys(0, length), odd = keys(kLanes, length);
    for (size_t i = 2 * kLanes; i < size_; i += 2 * kLanes) {
      even = lesser(keys(i, length), even);
      odd = lesser(keys(i + kLanes, length), odd);
    }
    const Floats four = lesser(even, odd);
    const Floats two = lesser(four, __builtin_shufflevector(four, four, 2, 3, 0, 1));
    const float one = std::min(two[0], two[1]);
    const auto rail = static_cast<size_t>(std::bit_cast<int32_t>(one) & kIndexMask);
    return size_ == 0 || ready_ns_[rail] >= kNever ? kNoRail : rail;
  }

  size_t size_ = 0;
  std::array<RailLoad, kMaxRails> loads_;
  alignas(16) std::array<float, kMaxRails> ready_ns_;  // latency, what is outstanding; kNever: down
  alignas(16) std::array<float, kMaxRails> ns_per_byte_ = {};
};

}  // namespace slime
