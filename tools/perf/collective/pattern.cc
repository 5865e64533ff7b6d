#include "tools/perf/collective/pattern.h"

#include <strings.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tools/common/bytes.h"
#include "tools/perf/collective/kernels.h"

namespace slime::perf {
namespace {

constexpr size_t index_of(Protocol protocol) { return static_cast<size_t>(protocol); }
constexpr size_t div_up(size_t a, size_t b) { return (a + b - 1) / b; }

Result<void> read_size(const char* variable, size_t* bytes, size_t unit) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return {};
  const auto value = tools::parse_bytes(text);
  if (!value || *value < unit || *value > kMaxNetBytes || *value % unit != 0) {
    return fail(make_error(Status::kConfig, 0,
                           "%s=%s: write a multiple of %zu between %zu and %zu bytes", variable,
                           text, unit, unit, kMaxNetBytes));
  }
  *bytes = *value;
  return {};
}

// Payload of lines, flags left out.
size_t payload_of(Protocol protocol, size_t bytes) {
  if (protocol == Protocol::kLl) return bytes / 2;
  return protocol == Protocol::kLl128 ? bytes / kLl128LineBytes * kLl128LineData : bytes;
}

}  // namespace

Result<BufferSizes> buffer_sizes_from_environment() {
  BufferSizes sizes;
  // Slots are cut at multiples of 1 KiB, so that lines and elements never straddle two of them.
  constexpr size_t kUnit = kSteps * 1024;
  auto done = read_size("NCCL_BUFFSIZE", &sizes.fifo[index_of(Protocol::kSimple)], kUnit);
  if (done) done = read_size("NCCL_LL_BUFFSIZE", &sizes.fifo[0], kUnit);
  if (done) done = read_size("NCCL_LL128_BUFFSIZE", &sizes.fifo[1], kUnit);
  if (done) done = read_size("NCCL_P2P_NET_CHUNKSIZE", &sizes.p2p_chunk, 4096);
  if (!done) return fail(done.error());
  return sizes;
}

Geometry ring_geometry(Collective collective, Protocol protocol, const BufferSizes& sizes) {
  Geometry geometry;
  geometry.protocol = protocol;
  geometry.step_bytes = sizes.fifo[index_of(protocol)] / kSteps;
  if (protocol == Protocol::kSimple && collective != Collective::kBroadcast) {
    geometry.slice_steps = kSteps / 4;
    geometry.chunk_steps = kSteps / 2;
  }
  const size_t chunk = geometry.step_bytes * static_cast<size_t>(geometry.chunk_steps);
  geometry.chunk_data = payload_of(protocol, chunk) / 16 * 16;
  return geometry;
}

Geometry p2p_geometry(Protocol protocol, size_t bytes, const BufferSizes& sizes) {
  Geometry geometry;
  geometry.protocol = protocol;
  geometry.step_bytes =
      protocol == Protocol::kSimple ? sizes.p2p_chunk : sizes.fifo[index_of(protocol)] / kSteps;
  size_t chunk = geometry.step_bytes;
  if (protocol == Protocol::kSimple && bytes < geometry.step_bytes) {
    chunk /= 4;
  } else if (bytes < kSteps * geometry.step_bytes) {
    chunk /= 2;
  }
  geometry.chunk_data = payload_of(protocol, chunk);
  return geometry;
}

size_t message_bytes(Protocol protocol, size_t data) {
  if (protocol == Protocol::kLl) return div_up(data, kLlLineData) * kLlLineBytes;
  if (protocol == Protocol::kLl128) return div_up(data, kLl128LineData) * kLl128LineBytes;
  return data;
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
    const auto found = std::find_if(
        kProtocolNames.begin(), kProtocolNames.end(),
        [&](std::string_view known) { return strcasecmp(name.c_str(), known.data()) == 0; });
    if (found == kProtocolNames.end()) {
      return fail(make_error(Status::kConfig, 0, "NCCL_PROTO=%s: '%s' is none of LL, LL128, Simple",
                             nccl_proto, name.c_str()));
    }
    allowed[static_cast<size_t>(found - kProtocolNames.begin())] = !excluded;
  }
  return allowed;
}

Protocol default_protocol(Collective collective, size_t bytes, int ranks, int channels,
                          const AllowedProtocols& allowed) {
  // Of one channel in one step: NCCL_P2P_LL_THRESHOLD.
  constexpr size_t kShort = 16384;
  const size_t steps = is_point_to_point(collective) ? 1 : static_cast<size_t>(ranks);
  const bool is_short = bytes <= kShort * static_cast<size_t>(channels) * steps;
  if (is_point_to_point(collective)) {
    return is_short && allowed[index_of(Protocol::kLl)] ? Protocol::kLl : Protocol::kSimple;
  }
  const Protocol first = is_short ? Protocol::kLl : Protocol::kSimple;
  const Protocol second = is_short ? Protocol::kSimple : Protocol::kLl;
  for (const Protocol protocol : {first, second, Protocol::kLl128}) {
    if (allowed[index_of(protocol)]) return protocol;
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
  const size_t step = sizes.fifo[index_of(Protocol::kSimple)] / kSteps;
  size_t chunk = std::min<size_t>(256 << 10, step);
  const auto chunks = [&] { return bytes / (static_cast<size_t>(channels) * chunk); };
  while (chunks() < 64 && chunk > 128 << 10) chunk /= 2;
  while (chunks() < 8 && chunk > 64 << 10) chunk /= 2;
  while (chunks() < 1 && chunk > 32 << 10) chunk /= 2;
  return chunk;
}

CollPlan make_coll_plan(const CollShape& shape, const BufferSizes& sizes) {
  constexpr int kGroupChannels = 8;  // COLLNET_GROUP_NSUBS: channels that share one call
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
