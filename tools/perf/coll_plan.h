// How one allreduce becomes iallreduce calls: NCCL's CollNetChain between nodes of one GPU
// (src/enqueue.cc, src/transport/coll_net.cc of 2.28). Pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tools/perf/tuning.h"

namespace slime::perf {

inline constexpr int kGroupChannels = 8;  // COLLNET_GROUP_NSUBS: channels that share one call

// What NCCL takes for tables before v9, which do not say it (MAX_COLLNET_SIZE).
inline constexpr size_t kMaxCollBytes = size_t{512} << 20;

struct CollShape {
  size_t bytes = 0;
  size_t element_bytes = 4;
  int channels = 1;
  bool direct = false;
  size_t max_call_bytes = kMaxCollBytes;  // maxCollBytes of the device
};

struct CollPlan {
  size_t call_bytes = 0;  // of each call; of direct ones, the last is shorter
  size_t calls = 0;
  uint32_t depth = 1;  // calls outstanding
};

// Channels that work on so many bytes.
int choose_coll_channels(size_t bytes, int channels);

// Bytes of one channel's chunk.
size_t coll_chunk_bytes(size_t bytes, int channels, const BufferSizes& sizes);

CollPlan make_coll_plan(const CollShape& shape, const BufferSizes& sizes);

}  // namespace slime::perf
