// Which messages an operation becomes, by protocol, channels and sizes, as in NCCL.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tools/common/bytes.h"
#include "tools/perf/collective/kernels.h"
#include "tools/perf/collective/plan.h"

namespace slime::perf {
namespace {

// Payload of messages of so many bytes, flags left out.
size_t payload_of(Protocol protocol, size_t bytes) {
  const Line line = line_of(protocol);
  return bytes / line.bytes * line.data;
}

}  // namespace

Result<BufferSizes> buffer_sizes_from_environment() {
  BufferSizes sizes;
  // Slots are cut at multiples of 1 KiB, so that lines and elements never straddle two of them.
  constexpr size_t kUnit = kSteps * 1024;
  struct Variable {
    const char* name;
    size_t *bytes, unit;
  };
  for (const auto& [name, bytes, unit] :
       {Variable{"NCCL_BUFFSIZE", &sizes.fifo[2], kUnit},
        Variable{"NCCL_LL_BUFFSIZE", &sizes.fifo[0], kUnit},
        Variable{"NCCL_LL128_BUFFSIZE", &sizes.fifo[1], kUnit},
        Variable{"NCCL_P2P_NET_CHUNKSIZE", &sizes.p2p_chunk, 4096}}) {
    const char* const text = std::getenv(name);
    if (text == nullptr || *text == '\0') continue;
    const auto value = tools::parse_bytes(text);
    if (!value || *value < unit || *value > kMaxNetBytes || *value % unit != 0) {
      return fail(make_error(Status::kConfig, 0,
                             "%s=%s: write a multiple of %zu between %zu and %zu bytes", name, text,
                             unit, unit, kMaxNetBytes));
    }
    *bytes = *value;
  }
  return sizes;
}

Geometry ring_geometry(Collective collective, Protocol protocol, const BufferSizes& sizes) {
  const bool cut = protocol == Protocol::kSimple && collective != Collective::kBroadcast;
  const size_t slice_steps = cut ? kSteps / 4 : 1, chunk_steps = cut ? kSteps / 2 : 1;
  const size_t step = sizes.step_bytes(protocol);
  return {.protocol = protocol,
          .slot_bytes = step * slice_steps,
          .depth = static_cast<uint32_t>(kSteps / slice_steps),
          .slices = static_cast<uint32_t>(chunk_steps / slice_steps),
          .chunk_bytes = payload_of(protocol, step * chunk_steps) / 16 * 16};
}

Geometry p2p_geometry(Protocol protocol, size_t bytes, const BufferSizes& sizes) {
  const bool simple = protocol == Protocol::kSimple;
  const size_t step = simple ? sizes.p2p_chunk : sizes.step_bytes(protocol);
  size_t chunk = step;
  if (simple && bytes < step) {
    chunk /= 4;
  } else if (bytes < kSteps * step) {
    chunk /= 2;
  }
  return {.protocol = protocol,
          .slot_bytes = step,
          .depth = kSteps,
          .chunk_bytes = payload_of(protocol, chunk)};
}

size_t message_bytes(Protocol protocol, size_t data) {
  const Line line = line_of(protocol);
  return div_up(data, line.data) * line.bytes;
}

Result<AllowedProtocols> allowed_protocols(const char* nccl_proto) {
  AllowedProtocols allowed = {true, true, true};
  if (nccl_proto == nullptr || *nccl_proto == '\0') return allowed;
  std::string_view text = nccl_proto;
  // Settings per collective ("ring,tree;allreduce:...") are NCCL's to read.
  if (text.find(':') != std::string_view::npos) return allowed;
  const bool excluded = text.front() == '^';
  if (excluded) text.remove_prefix(1);
  allowed.fill(excluded);
  while (!text.empty()) {
    const std::string name(text.substr(0, text.find(',')));
    text.remove_prefix(std::min(text.size(), name.size() + 1));
    const auto found = find_word<Protocol>(name);
    if (!found) {
      return fail(make_error(Status::kConfig, 0, "NCCL_PROTO=%s: '%s' is none of LL, LL128, Simple",
                             nccl_proto, name.c_str()));
    }
    allowed[static_cast<size_t>(*found)] = !excluded;
  }
  return allowed;
}

Protocol default_protocol(Collective collective, size_t bytes, int ranks, int channels,
                          const AllowedProtocols& allowed) {
  // Of one channel in one step: NCCL_P2P_LL_THRESHOLD.
  constexpr size_t kShort = 16384;
  const bool p2p = is_point_to_point(collective);
  const size_t steps = p2p ? 1 : static_cast<size_t>(ranks);
  const bool is_short = bytes <= kShort * static_cast<size_t>(channels) * steps;
  const Protocol first = is_short ? Protocol::kLl : Protocol::kSimple;
  const Protocol second = is_short || p2p ? Protocol::kSimple : Protocol::kLl;
  for (const Protocol protocol : {first, second, p2p ? Protocol::kSimple : Protocol::kLl128}) {
    if (allowed[static_cast<size_t>(protocol)]) return protocol;
  }
  return Protocol::kSimple;
}

int channels_for(Protocol protocol, size_t bytes, int ranks, int channels) {
  // Threads per channel times bytes per thread below which NCCL takes a channel less.
  size_t least = 512 * 64;
  if (protocol == Protocol::kLl) least = 512 * 8 * static_cast<size_t>(ranks);
  if (protocol == Protocol::kLl128) least = 640 * 8;
  const size_t useful = std::max<size_t>(1, bytes / least);
  return static_cast<int>(std::min<size_t>(useful, static_cast<size_t>(channels)));
}

int coll_channels_for(size_t bytes, int channels) {
  constexpr size_t kBytesPerChannel = 640 * 512;  // threads times bytes per thread
  while (channels > 1 && bytes < static_cast<size_t>(channels) * kBytesPerChannel) --channels;
  return channels;
}

size_t coll_chunk_bytes(size_t bytes, int channels, const BufferSizes& sizes) {
  size_t chunk = std::min<size_t>(256 << 10, sizes.step_bytes(Protocol::kSimple));
  const auto chunks = [&] { return bytes / (static_cast<size_t>(channels) * chunk); };
  while (chunks() < 64 && chunk > 128 << 10) chunk /= 2;
  while (chunks() < 8 && chunk > 64 << 10) chunk /= 2;
  while (chunks() < 1 && chunk > 32 << 10) chunk /= 2;
  return chunk;
}

Geometry coll_geometry(const Shape& shape, size_t max_call_bytes, const BufferSizes& sizes) {
  constexpr int kGroupChannels = 8;  // COLLNET_GROUP_NSUBS: channels that share one call
  const size_t bytes = shape.bytes(), element_bytes = size_of(shape.type);
  if (shape.direct) {
    const size_t elements = std::max(max_call_bytes / element_bytes, size_t{1});
    const size_t call_bytes = std::min(elements * element_bytes, bytes);
    return {.slot_bytes = call_bytes, .depth = kSteps, .chunk_bytes = call_bytes};
  }
  const int together = std::min(shape.channels, kGroupChannels);
  const size_t call_bytes =
      static_cast<size_t>(together) * coll_chunk_bytes(bytes, shape.channels, sizes);
  // Eight steps of all channels: what the FIFOs hold.
  const auto depth = static_cast<uint32_t>(kSteps * shape.channels / together);
  return {.slot_bytes = call_bytes, .depth = depth, .chunk_bytes = call_bytes};
}

}  // namespace slime::perf
