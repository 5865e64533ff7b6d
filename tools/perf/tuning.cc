#include "tools/perf/tuning.h"

#include <strings.h>

#include <algorithm>
#include <cstdlib>

#include "tools/common/bytes.h"
#include "tools/perf/kernels.h"

namespace slime::perf {
namespace {

constexpr size_t index_of(Protocol protocol) { return static_cast<size_t>(protocol); }

Result<void> read_size(const char* variable, size_t* bytes, size_t least, size_t multiple) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return {};
  const auto value = tools::parse_bytes(text);
  if (!value || *value < least || *value > kMaxNetBytes || *value % multiple != 0) {
    return fail(make_error(Status::kConfig, 0,
                           "%s=%s: write a multiple of %zu between %zu and %zu bytes", variable,
                           text, multiple, least, kMaxNetBytes));
  }
  *bytes = *value;
  return {};
}

// Model latencies in microseconds, [LL, LL128, Simple].
constexpr double kBaseLatency[] = {6.6, 14.0, 8.4};
constexpr double kNetLatency[] = {5.0, 8.5, 14.0};      // per step of a ring of nodes
constexpr double kPipeLatency[] = {2.7, 4.0, 14.0};     // per step of a broadcast
constexpr double kBandwidthShare[] = {0.5, 0.92, 1.0};  // of the wire that is payload

double model_us(Collective collective, Protocol protocol, size_t bytes, int ranks, int channels,
                const NetSpeed& speed) {
  const size_t p = index_of(protocol);
  const bool pipelined = collective == Collective::kBroadcast;
  const int steps = pipelined                              ? ranks
                    : collective == Collective::kAllReduce ? 2 * (ranks - 1)
                                                           : ranks - 1;
  const double net = static_cast<int>(speed.latency_us);  // NCCL keeps it as an integer
  const double flush = protocol == Protocol::kSimple ? net : 0;
  const double step_us = pipelined ? kPipeLatency[p] : kNetLatency[p] + net + flush;
  double latency_us = kBaseLatency[p] + steps * step_us;
  const auto shares = static_cast<size_t>(channels) * static_cast<size_t>(ranks);
  if (collective == Collective::kAllReduce && protocol == Protocol::kSimple &&
      bytes / shares >= 64) {
    latency_us *= 1.4;  // "plateau effect of ring"
  }
  const double gigabytes = std::max(1, speed.speed_mbps) / 8000.0 * kBandwidthShare[p];
  return latency_us + static_cast<double>(bytes) * steps / ranks / (1000 * gigabytes);
}

}  // namespace

Result<BufferSizes> buffer_sizes_from_environment() {
  BufferSizes sizes;
  // Slots are cut at multiples of 1 KiB, so that lines and elements never straddle two of them.
  constexpr size_t kUnit = kSteps * 1024;
  auto done = read_size("NCCL_BUFFSIZE", &sizes.fifo[index_of(Protocol::kSimple)], kUnit, kUnit);
  if (done) done = read_size("NCCL_LL_BUFFSIZE", &sizes.fifo[0], kUnit, kUnit);
  if (done) done = read_size("NCCL_LL128_BUFFSIZE", &sizes.fifo[1], kUnit, kUnit);
  if (done) done = read_size("NCCL_P2P_NET_CHUNKSIZE", &sizes.p2p_chunk, 4096, 4096);
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
  geometry.chunk_data = geometry.step_bytes * static_cast<size_t>(geometry.chunk_steps);
  if (protocol == Protocol::kLl) geometry.chunk_data /= 2;
  if (protocol == Protocol::kLl128) {
    geometry.chunk_data = geometry.chunk_data / kLl128LineBytes * kLl128LineData;
  }
  geometry.chunk_data = geometry.chunk_data / 16 * 16;
  return geometry;
}

Geometry p2p_geometry(Protocol protocol, size_t bytes, const BufferSizes& sizes) {
  Geometry geometry;
  geometry.protocol = protocol;
  geometry.step_bytes =
      protocol == Protocol::kSimple ? sizes.p2p_chunk : sizes.fifo[index_of(protocol)] / kSteps;
  geometry.chunk_data = geometry.step_bytes;
  if (protocol == Protocol::kSimple && bytes < geometry.step_bytes) {
    geometry.chunk_data /= 4;
  } else if (bytes < kSteps * geometry.step_bytes) {
    geometry.chunk_data /= 2;
  }
  if (protocol == Protocol::kLl) geometry.chunk_data /= 2;
  if (protocol == Protocol::kLl128) {
    geometry.chunk_data = geometry.chunk_data / kLl128LineBytes * kLl128LineData;
  }
  return geometry;
}

size_t message_bytes(Protocol protocol, size_t data) {
  switch (protocol) {
    case Protocol::kLl:
      return (data + kLlLineData - 1) / kLlLineData * kLlLineBytes;
    case Protocol::kLl128:
      return (data + kLl128LineData - 1) / kLl128LineData * kLl128LineBytes;
    case Protocol::kSimple:
      break;
  }
  return data;
}

Result<AllowedProtocols> allowed_protocols(const char* nccl_proto) {
  AllowedProtocols result;
  if (nccl_proto == nullptr || *nccl_proto == '\0') return result;
  std::string_view text = nccl_proto;
  // Settings per collective ("ring,tree;allreduce:...") are NCCL's to read.
  if (text.find(':') != std::string_view::npos) return result;
  const bool excluded = text.front() == '^';
  if (excluded) text.remove_prefix(1);
  std::array<bool, kProtocols> named = {};
  while (!text.empty()) {
    const std::string name(text.substr(0, text.find(',')));
    text.remove_prefix(std::min(text.size(), name.size() + 1));
    bool known = false;
    for (size_t p = 0; p < kProtocols; ++p) {
      if (strcasecmp(name.c_str(), kProtocolNames[p].data()) == 0) known = named[p] = true;
    }
    if (!known) {
      return fail(make_error(Status::kConfig, 0, "NCCL_PROTO=%s: '%s' is none of LL, LL128, Simple",
                             nccl_proto, name.c_str()));
    }
  }
  for (size_t p = 0; p < kProtocols; ++p) {
    result.allowed[p] = named[p] != excluded;
    result.automatic[p] = result.allowed[p] && (!excluded || p != index_of(Protocol::kLl128));
  }
  return result;
}

Protocol choose_protocol(Collective collective, size_t bytes, int ranks, int channels,
                         const NetSpeed& speed, const AllowedProtocols& allowed) {
  if (is_point_to_point(collective)) {
    constexpr size_t kThreshold = 16384;  // NCCL_P2P_LL_THRESHOLD
    const bool small = bytes <= kThreshold * static_cast<size_t>(channels);
    return small && allowed.allowed[0] ? Protocol::kLl : Protocol::kSimple;
  }
  std::optional<Protocol> best;
  double best_us = 0;
  for (size_t p = 0; p < kProtocols; ++p) {
    if (!allowed.automatic[p]) continue;
    const auto protocol = static_cast<Protocol>(p);
    const double us = model_us(collective, protocol, bytes, ranks, channels, speed);
    if (best && us >= best_us) continue;
    best = protocol;
    best_us = us;
  }
  return best.value_or(Protocol::kSimple);
}

int choose_channels(Protocol protocol, size_t bytes, int ranks, int channels) {
  // Threads per channel times bytes per thread below which NCCL takes a channel less.
  size_t least = 512 * 64;
  if (protocol == Protocol::kLl) least = 512 * 8 * static_cast<size_t>(ranks);
  if (protocol == Protocol::kLl128) least = 640 * 8;
  const size_t useful = std::max<size_t>(1, bytes / least);
  return static_cast<int>(std::min<size_t>(useful, static_cast<size_t>(channels)));
}

}  // namespace slime::perf
