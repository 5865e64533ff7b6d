// What bench-engine times. A load does a piece of work again and again; each piece is long enough
// that reading the clock does not matter and short enough to fit between two interruptions.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace slime::bench {

inline constexpr uint32_t kWorkBytes = 64 << 10;
inline constexpr uint32_t kPieceWorks = 512;  // of a piece; fits the ring of a null rail

// Nanoseconds per work of one piece. The receiving end is the other host's cost: it is timed
// separately where there is one.
struct Cost {
  double sender = 0;
  double receiver = 0;
};

class Load {
 public:
  virtual ~Load() = default;
  virtual Cost run_piece() = 0;
};

// The rail alone: what is in every other figure and is not the engine's.
std::unique_ptr<Load> make_rail_load(uint32_t batch);
// push, flush and complete of one PostQueue, `batch` works for each flush.
std::unique_ptr<Load> make_queue_load(uint32_t batch);
// Link::submit and progress, `batch` works for each progress.
std::unique_ptr<Load> make_link_load(uint32_t rails, uint32_t batch);
// isend, irecv and test; messages of `stripes` works of 64 KiB each.
std::unique_ptr<Load> make_message_load(uint32_t rails, uint32_t stripes);
// The same with eager messages of 8 bytes, one work each.
std::unique_ptr<Load> make_eager_load();

}  // namespace slime::bench
