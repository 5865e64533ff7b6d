// Which messages an operation becomes: protocol, channels and sizes. They are the sizes of NCCL
// 2.28 between nodes (src/init.cc, src/enqueue.cc, src/transport/coll_net.cc), with every rank a
// node of its own; the choice among protocols is this program's. Pure, but for what reads the
// environment.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "tools/perf/plugin/net_table.h"

namespace slime::perf {

inline constexpr int kSteps = 8;                         // NCCL_STEPS
inline constexpr size_t kMaxNetBytes = size_t{1} << 30;  // NCCL_MAX_NET_SIZE

// Sizes of one connection's FIFO per protocol, and the chunk of point-to-point.
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

// Protocols that NCCL_PROTO leaves: "Simple", "LL,Simple", "^LL128".
using AllowedProtocols = std::array<bool, kProtocols>;
Result<AllowedProtocols> allowed_protocols(const char* nccl_proto);
// Where --proto names none: LL for short operations, Simple for others. LL128 needs a network that
// keeps the order of bytes: it is taken only where nothing else is allowed.
Protocol default_protocol(Collective collective, size_t bytes, int ranks, int channels,
                          const AllowedProtocols& allowed);
// Short operations use fewer channels.
int channels_for(Protocol protocol, size_t bytes, int ranks, int channels);

// How one allreduce becomes iallreduce calls: NCCL's CollNetChain between nodes of one GPU.
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
int coll_channels_for(size_t bytes, int channels);
// Bytes of one channel's chunk.
size_t coll_chunk_bytes(size_t bytes, int channels, const BufferSizes& sizes);
CollPlan make_coll_plan(const CollShape& shape, const BufferSizes& sizes);

}  // namespace slime::perf
