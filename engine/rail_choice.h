// Which rail a work goes over: pure functions of what is known of the rails.
//
// A rail's time to done is its latency, and the time that its rate needs for what is outstanding on
// it and for the work. Small messages take the rail with the least. A stripe of a large message
// does too, but is posted only when the rail's window has room; until then it waits with the
// others, and may go over another rail that has room, if that is done before the better rails would
// be done with all that waits. So rails that are never idle share large messages by what they
// deliver, whatever they advertise, and the last stripes do not wait for a slow one.
// docs/striping.md draws it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

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

// For a small message. The favourite is the rail of the last one: warm at both ends, so another
// must be better by an eighth.
inline size_t quickest_rail(std::span<const RailLoad> rails, uint64_t bytes, size_t favourite) {
  size_t best = kNoRail;
  double best_ns = 0;
  for (size_t i = 0; i < rails.size(); ++i) {
    if (!rails[i].up) continue;
    const double ns = rails[i].done_ns(bytes) * (i == favourite ? 7.0 / 8 : 1.0);
    if (best != kNoRail && ns >= best_ns) continue;
    best = i;
    best_ns = ns;
  }
  return best;
}

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

}  // namespace slime
