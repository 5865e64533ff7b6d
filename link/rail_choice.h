// Chooses the rail of a work by the rails' loads.
//
// The time to done of a rail is its latency plus the time that it needs, at its rate, for the work
// and for the bytes that are outstanding on it. Small messages, and messages that are not cut, take
// the rail with the least time to done. A stripe of a large message does too, but only when the
// window of that rail has room. If it has none, two times are compared: when another rail with room
// would be done with this stripe, and when the better rails would be done with all bytes that wait.
// If the first is earlier, the stripe takes that other rail; otherwise it waits. So rails that are
// never idle share large messages in proportion to their measured rates, and the last stripes do
// not wait for a slow rail. docs/striping.md draws it.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "devices/device.h"

namespace slime {

// The load of one rail, as the choice sees it.
struct RailLoad {
  double ns_per_byte = 0;
  double latency_ns = 0;
  uint64_t outstanding = 0;  // bytes waiting or in flight
  uint64_t window = 0;
  bool up = false;
  // The bytes that the process's other links have outstanding there, until the rate is measured:
  // the advertised rate is that of all together, a measured one is what they leave to this link.
  uint64_t others = 0;

  double done_ns(uint64_t bytes) const {
    return latency_ns + static_cast<double>(outstanding + others + bytes) * ns_per_byte;
  }
  // A second work always has room behind one of its length, so that the rail is not idle between
  // the two.
  bool has_room(uint64_t bytes) const { return outstanding < window || outstanding <= bytes; }
};

inline constexpr size_t kNoRail = SIZE_MAX;

// The rail for a stripe, the first of `waiting` bytes. kNoRail: the stripe waits.
inline size_t rail_with_room(std::span<const RailLoad> rails, uint64_t bytes, uint64_t waiting) {
  size_t chosen = kNoRail;
  // The best rail with room, and the time of the best rail of all.
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
  // The better rails have no room. The sum of their rates, and of the bytes that they have left,
  // says when they would be done with everything that waits.
  double rate = 0, bytes_left = static_cast<double>(waiting);
  for (const RailLoad& rail : rails) {
    if (!rail.up || rail.done_ns(bytes) >= chosen_ns) continue;
    rate += 1 / rail.ns_per_byte;
    bytes_left +=
        static_cast<double>(rail.outstanding + rail.others) + rail.latency_ns / rail.ns_per_byte;
  }
  return chosen_ns * rate <= bytes_left ? chosen : kNoRail;
}

// The loads of all rails of a link.
//
// The choice of a rail reads all of them for each small message and each stripe. So two arrays hold
// the figures that it needs, and vector instructions compare four rails in one step.
// Invariant: ready_ns_ and ns_per_byte_ agree with loads_ (set, submitted). A rail that is down has
// ready_ns_ kNever. Thread: that of the link.
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
  // Adds the bytes to a rail. It stores a vector of four rails, because the next choice reads such
  // a vector, and a processor cannot forward a narrower store to a wider read.
  void submitted(size_t rail, uint32_t bytes) {
    loads_[rail].outstanding += bytes;
    const float more_ns = static_cast<float>(bytes) * ns_per_byte_[rail];
    float* const step = &ready_ns_[rail & ~(kLanes - 1)];
    const Keys is_rail = kFirst == static_cast<int32_t>(rail & (kLanes - 1));
    const Floats sum =
        load(step) + std::bit_cast<Floats>(std::bit_cast<Keys>(Floats{} + more_ns) & is_rail);
    std::memcpy(step, &sum, sizeof sum);
  }

  // The rail for a small message. `preferred` is the rail of the last one: caches at both ends are
  // warm there, so another rail must be better by an eighth.
  size_t quickest(uint64_t bytes, size_t preferred) const {
    const float length = to_float(bytes);
    const size_t rail = least(length);
    if (rail == kNoRail) return kNoRail;
    return done_ns(preferred, length) * (7.0F / 8) <= done_ns(rail, length) ? preferred : rail;
  }

  // The result of rail_with_room(). Most calls need only the rail that is done first, if it has
  // room.
  size_t with_room(uint64_t bytes, uint64_t waiting) const {
    const size_t rail = least(to_float(bytes));
    if (rail == kNoRail || loads_[rail].has_room(bytes)) return rail;
    return rail_with_room(all(), bytes, waiting);
  }

 private:
  // The vector extension of GCC and clang works on any processor. A key holds a rail's time to done
  // and its index in one float: the index is in the lowest bits, which change the time by less than
  // 4 in a million.
  static constexpr size_t kLanes = 4;
  using Floats = float __attribute__((vector_size(kLanes * sizeof(float))));
  using Keys = int32_t __attribute__((vector_size(kLanes * sizeof(int32_t))));
  static constexpr Keys kFirst = {0, 1, 2, 3};
  static constexpr int32_t kIndexMask = 31;
  static_assert(kMaxRails <= kIndexMask + 1 && kMaxRails % (2 * kLanes) == 0);
  static constexpr float kNever = 1e30F;
  // Added to all times: 0 with an index would be a denormal, which some programs flush to 0.
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
  alignas(16) std::array<float, kMaxRails> ready_ns_;  // time to done of no bytes; kNever: down
  alignas(16) std::array<float, kMaxRails> ns_per_byte_ = {};
};

}  // namespace slime
