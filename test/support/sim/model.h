// How a simulated rail behaves, and what the network saw. All times in virtual nanoseconds.
#pragma once

#include <cstdint>

namespace slime::sim {

enum class Death : uint8_t {
  kNoticed,  // the ends get a notice within notice_ns, unless one_sided
  kSilent,   // nothing moves any more, and no end gets a notice
};

// What calls cost the processor of the caller; charged to the clock.
struct CallCosts {
  uint64_t post_ns = 0;      // per work taken
  uint64_t doorbell_ns = 0;  // per post that took something
  uint64_t refused_ns = 0;   // per post that took nothing
  uint64_t poll_ns = 0;      // per poll
};

// The defaults are an ideal rail of 100 Gb/s; a test asks for each trouble. The rail keeps what its
// RailCaps say (ordered, queue depth, arrives_unpolled ...); the model adds to that.
struct RailModel {
  // The wire: one per rail and direction, shared by its channels, first come first served. A pair
  // of rails moves at the pace of the slower one.
  uint64_t rate_mbps = 100'000;  // 0: no limit
  uint64_t latency_ns = 2'000;   // one way
  uint64_t wire_work_ns = 0;     // wire time of a work over that of its bytes

  CallCosts costs;

  // Disorder. On an ordered rail a delayed work holds up those behind it.
  uint64_t jitter_ns = 0;  // unordered rails: each arrival is late by up to this
  uint32_t delay_ppm = 0;  // this share of the works is late by up to delay_ns
  uint64_t delay_ns = 0;
  uint32_t repeat_sent_ppm = 0;  // completions that come a second time, within repeat_ns
  uint32_t repeat_arrived_ppm = 0;
  uint64_t repeat_ns = 0;
  bool uses_offsets = false;     // finds the target of a work by remote_offset, not remote_address
  bool needs_flush = false;      // what arrives in device memory is not there before a flush
  bool fence_flushes = false;    // unless the channel that brought it is fenced or closed
  uint32_t connect_retries = 0;  // connect() returns kAgain up to this many times for nothing

  // Of works that are not confirmed: what may be kSent and not yet reported by the peer, per
  // channel; one work of any size always may. A work counts its bytes and kWorkOverheadBytes.
  uint64_t window_bytes = 4 << 20;

  // Death of the rail. What was on the wire may be delivered, delivered late, torn or lost.
  uint64_t dies_at_ns = 0;        // 0: never
  uint64_t dies_after_works = 0;  // works posted on it; 0: never
  Death death = Death::kNoticed;
  uint64_t notice_ns = 10'000;
  uint32_t one_sided_ppm = 0;  // share of the channels where one end gets no notice of it
};

inline constexpr uint64_t kWorkOverheadBytes = 64;

// Misuse of the rails: all zero unless a test means it.
struct Violations {
  uint64_t remote_access = 0;   // wrong key or bounds at the receiver; nothing was written
  uint64_t local_access = 0;    // a source outside registered memory
  uint64_t source_changed = 0;  // a source written to while its work was in flight
  uint64_t bad_calls = 0;       // posts too long or unconnected, unknown keys deregistered

  uint64_t total() const { return remote_access + local_access + source_changed + bad_calls; }
};

// What became of works whose channel failed: a test sees by it that it met such cases.
struct Outcomes {
  uint64_t delivered = 0;  // at the last moment
  uint64_t late = 0;       // in flight when the channel failed, to arrive if not fenced off
  uint64_t torn = 0;       // a part of the bytes delivered, and no arrival is reported
  uint64_t lost = 0;
  uint64_t unconfirmed = 0;  // reported by the receiver, and the sender will never know
  uint64_t fenced_off = 0;   // kept out by fence()
};

}  // namespace slime::sim
