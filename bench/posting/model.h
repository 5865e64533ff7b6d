// What a row of the ladder is, and what it is measured by. All of it in virtual time.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace slime::bench {

// What the calls of a NIC's library cost its caller, in nanoseconds.
struct Regime {
  const char* name;
  uint64_t post, doorbell, refused, poll;
};
// The first is what libfabric's efa provider seems to cost per call (the 1.3 to 1.6 us per write
// that "Harnessing 3200 Gbps" ends with); the others are of cheaper libraries, so that the NIC is
// the bottleneck.
inline constexpr std::array<Regime, 3> kRegimes = {{
    {"CPU-bound", 900, 250, 600, 270},
    {"NIC-bound", 250, 150, 100, 100},
    {"NIC-bound, dear doorbell", 120, 300, 60, 40},
}};

inline constexpr uint32_t kWorkBytes = 64 << 10;
inline constexpr uint32_t kRateMbps = 100'000;
inline constexpr uint64_t kWireNs = 5'243;  // what kWorkBytes take at that rate
inline constexpr uint32_t kQueueDepth = 256;
inline constexpr uint32_t kMaxBatch = 64;
inline constexpr uint32_t kGroupNics = 4;    // that share one thread, as on AWS p5
inline constexpr uint64_t kGenerateNs = 50;  // to make a work and put it into a queue

// One step of the ladder; each row changes one flag of the row before.
struct Flags {
  uint32_t nics = 1;
  uint32_t threads = 1;    // virtual: each has its own clock and shares nothing
  uint32_t batch = 1;      // works made per turn of the loop
  bool lazy = false;       // submit only queues, the poll loop posts
  uint32_t cap = 0;        // works queued or in flight per thread at most; 0: no bound
  bool pool = false;       // works come from a ring, not from the heap
  bool chain = false;      // one doorbell for what goes out together
  bool credits = false;    // no post without a free place, no poll of an idle NIC
  uint32_t watermark = 1;  // free places that make a busy NIC worth a doorbell
};

struct Outcome {
  uint64_t works = 0;
  uint64_t doorbells = 0, futile = 0, polls = 0, allocations = 0;
  uint64_t depth_max = 0;  // most works waiting in the queues of one thread
  double line_share = 0;   // of the modelled line rate of all NICs
  bool bounded = true;     // there is a limit to depth_max

  double per_work(uint64_t count) const {
    return works ? static_cast<double>(count) / static_cast<double>(works) : 0;
  }
  bool operator==(const Outcome&) const = default;
};

// Works per NIC. The count begins some time after all send queues were full, for only then does a
// loop show what it costs; where they never fill, when the warm-up ends.
struct RunLength {
  uint64_t warm_up = 12'000;
  uint64_t settle = 600;
  uint64_t counted = 2'000;
};

// No randomness in it, so no seed.
Outcome run_ladder_row(const Flags& flags, const Regime& regime, const RunLength& length);

// Threads that share nothing, and the NICs of each.
struct Shape {
  uint32_t threads = 8;
  uint32_t nics_per_thread = kGroupNics;
};

// The engine in place of the loop: works of 64 KiB, over rails that reorder as EFA does: the seed
// decides how.
Outcome run_engine_link(const Shape& shape, const Regime& regime, const RunLength& length,
                        uint64_t seed);
Outcome run_engine_comms(const Shape& shape, const Regime& regime, const RunLength& length,
                         uint64_t seed);
// libslime: requests of 256 pages that do not touch.
Outcome run_peer_writes(const Shape& shape, const Regime& regime, const RunLength& length,
                        uint64_t seed);
Outcome run_peer_reads(const Shape& shape, const Regime& regime, const RunLength& length,
                       uint64_t seed);

}  // namespace slime::bench
