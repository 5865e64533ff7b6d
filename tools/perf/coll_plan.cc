#include "tools/perf/coll_plan.h"

#include <algorithm>

namespace slime::perf {
namespace {

// GPUs of a node that a chain passes: collnetChain.depth.
constexpr size_t kChainDepth = 1;

size_t div_up(size_t a, size_t b) { return (a + b - 1) / b; }

}  // namespace

int choose_coll_channels(size_t bytes, int channels) {
  constexpr size_t kBytesPerChannel = 640 * 512;  // threads times bytes per thread
  while (channels > 1 && bytes < static_cast<size_t>(channels) * kBytesPerChannel) --channels;
  return channels;
}

size_t coll_chunk_bytes(size_t bytes, int channels, const BufferSizes& sizes) {
  const size_t step = sizes.fifo[static_cast<size_t>(Protocol::kSimple)] / kSteps;
  size_t chunk = std::min<size_t>(256 << 10, step);
  const auto chunks = [&] { return bytes / (static_cast<size_t>(channels) * chunk); };
  while (chunks() < kChainDepth * 64 && chunk > 128 << 10) chunk /= 2;
  while (chunks() < kChainDepth * 8 && chunk > 64 << 10) chunk /= 2;
  while (chunks() < kChainDepth && chunk > 32 << 10) chunk /= 2;
  return chunk;
}

CollPlan make_coll_plan(const CollShape& shape, const BufferSizes& sizes) {
  CollPlan plan;
  if (shape.direct) {
    plan.call_bytes = std::max(shape.max_call_bytes / shape.element_bytes, size_t{1});
    plan.call_bytes = std::min(plan.call_bytes * shape.element_bytes, shape.bytes);
    plan.depth = kSteps;
  } else {
    const int together = std::min(shape.channels, kGroupChannels);
    const size_t chunk = coll_chunk_bytes(shape.bytes, shape.channels, sizes);
    plan.call_bytes = static_cast<size_t>(together) * chunk;
    // Eight steps of all channels: what the FIFOs hold.
    plan.depth = static_cast<uint32_t>(kSteps * shape.channels / together);
  }
  if (shape.bytes > 0) plan.calls = div_up(shape.bytes, plan.call_bytes);
  return plan;
}

}  // namespace slime::perf
