// Which protocol, how many channels and which message sizes NCCL would use: its model for rings
// between nodes (src/graph/tuning.cc, src/enqueue.cc of 2.28), with every rank a node of its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "tools/perf/words.h"

namespace slime::perf {

inline constexpr int kSteps = 8;                         // NCCL_STEPS
inline constexpr size_t kMaxNetBytes = size_t{1} << 30;  // NCCL_MAX_NET_SIZE

// Sizes of one connection's FIFO per protocol (src/init.cc), and the chunk of point-to-point.
struct BufferSizes {
  std::array<size_t, kProtocols> fifo = {512 << 10, 4915200, 4 << 20};  // LL, LL128, Simple
  size_t p2p_chunk = 128 << 10;
};
Result<BufferSizes> buffer_sizes_from_environment();

// How messages of one operation look.
struct Geometry {
  Protocol protocol = Protocol::kSimple;
  size_t step_bytes = 0;  // of the FIFO, which has kSteps
  int slice_steps = 1;    // one message
  int chunk_steps = 1;    // one turn of the ring
  size_t chunk_data = 0;  // payload of one chunk

  int depth() const { return kSteps / slice_steps; }  // messages in flight
  size_t slot_bytes() const { return step_bytes * static_cast<size_t>(slice_steps); }
  int slices() const { return chunk_steps / slice_steps; }
};
Geometry ring_geometry(Collective collective, Protocol protocol, const BufferSizes& sizes);
Geometry p2p_geometry(Protocol protocol, size_t bytes, const BufferSizes& sizes);

// Bytes of a message that carries `data` bytes.
size_t message_bytes(Protocol protocol, size_t data);

// Protocols that NCCL_PROTO leaves: "Simple", "LL,Simple", "^LL128". LL128 is never chosen where
// it is not asked for: NCCL keeps it for networks close to the GPU.
struct AllowedProtocols {
  std::array<bool, kProtocols> allowed = {true, true, true};
  std::array<bool, kProtocols> automatic = {true, false, true};
};
Result<AllowedProtocols> allowed_protocols(const char* nccl_proto);

struct NetSpeed {
  int speed_mbps = 10000;
  float latency_us = 0;
};

Protocol choose_protocol(Collective collective, size_t bytes, int ranks, int channels,
                         const NetSpeed& speed, const AllowedProtocols& allowed);
int choose_channels(Protocol protocol, size_t bytes, int ranks, int channels);

}  // namespace slime::perf
