// What one rank does in one operation: per connection the sequence of messages, as NCCL's ring
// kernels make them (src/device/all_reduce.h, all_gather.h, reduce_scatter.h, broadcast.h,
// sendrecv.h). Pure: the same arguments give the same plan, and the plans of all ranks fit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "tools/perf/words.h"

namespace slime::perf {

// pattern.cc: which messages an operation becomes, by protocol, channels and sizes. They are the
// sizes of NCCL 2.28 between nodes (src/init.cc, src/enqueue.cc, src/transport/coll_net.cc), with
// every rank a node of its own; the choice among protocols is this program's. Pure, but for what
// reads the environment.
inline constexpr int kSteps = 8;                         // NCCL_STEPS
inline constexpr size_t kMaxNetBytes = size_t{1} << 30;  // NCCL_MAX_NET_SIZE
// What NCCL takes for CollNet tables before v9, whose properties lack it (MAX_COLLNET_SIZE).
inline constexpr size_t kMaxCollBytes = size_t{512} << 20;

constexpr size_t div_up(size_t a, size_t b) { return (a + b - 1) / b; }
constexpr size_t align_up(size_t a, size_t b) { return div_up(a, b) * b; }

// Sizes of one connection's FIFO per protocol, and the chunk of point-to-point.
struct BufferSizes {
  std::array<size_t, kProtocols> fifo = {512 << 10, 4915200, 4 << 20};  // LL, LL128, Simple
  size_t p2p_chunk = 128 << 10;

  size_t step_bytes(Protocol protocol) const {  // of the FIFO, which has kSteps
    return fifo[static_cast<size_t>(protocol)] / kSteps;
  }
};
Result<BufferSizes> buffer_sizes_from_environment();

// How messages of one operation look.
struct Geometry {
  Protocol protocol = Protocol::kSimple;
  size_t slot_bytes = 0;   // of the FIFO, for one message
  uint32_t depth = 1;      // messages in flight
  uint32_t slices = 1;     // messages of a chunk, which is one turn of the ring
  size_t chunk_bytes = 0;  // payload of one chunk
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

// One operation as one rank sees it.
struct Shape {
  Collective collective = Collective::kAllReduce;
  DataType type = DataType::kFloat32;
  RedOp op = RedOp::kSum;
  size_t count = 0;  // nccl-tests' "count": per rank, where the collective has per-rank parts
  int root = 0;
  int rank = 0, ranks = 2;
  int channels = 1;
  Protocol protocol = Protocol::kSimple;
  bool direct = false;
  bool in_place = false;

  size_t bytes() const { return count * size_of(type); }
};

// How one allreduce becomes iallreduce calls: NCCL's CollNetChain between nodes of one GPU.
int coll_channels_for(size_t bytes, int channels);
// Bytes of one channel's chunk.
size_t coll_chunk_bytes(size_t bytes, int channels, const BufferSizes& sizes);
// Each call is a message of one chunk; of direct ones, the last is shorter. `max_call_bytes`:
// maxCollBytes of the device.
Geometry coll_geometry(const Shape& shape, size_t max_call_bytes, const BufferSizes& sizes);

// plan.cc: what one rank does with them.
enum class Place : uint8_t { kNowhere, kFifo, kInput, kOutput };

// One message in, one message out, or both, and the work between them.
struct Step {
  size_t input_offset = 0, output_offset = 0;  // in bytes
  size_t bytes = 0;
  Place receive_into = Place::kNowhere;
  Place send_from = Place::kNowhere;
  bool reduce = false;  // what came in, with the input
  bool divide = false;  // last step of an average
  bool store = false;   // the result also goes to the output
};

struct Flow {
  int send_peer = -1, receive_peer = -1;  // -1: none
  int channel = 0;
  int batch = 0;  // flows of batch k+1 start when those of batch k are done
  Geometry geometry;
  std::vector<Step> steps;
};

std::vector<Flow> make_plan(const Shape& shape, const BufferSizes& sizes);
// The same through CollNet: what goes in, and what comes out.
std::vector<Flow> make_coll_plan(const Shape& shape, const Geometry& geometry);

// Elements of one operation, by nccl-tests' rules (getCollByteCount): `elements` is the size of the
// row divided by the element's.
struct Counts {
  size_t send = 0, receive = 0;                // per rank, in elements
  size_t param = 0;                            // the "count" column
  size_t send_offset = 0, receive_offset = 0;  // in-place: times the rank
};
Counts counts_of(Collective collective, size_t elements, size_t element_bytes, int ranks);

// busbw / algbw (nccl-tests' doc/PERFORMANCE.md), and the bytes that algbw counts.
double bus_factor(Collective collective, int ranks);
size_t algorithm_bytes(Collective collective, const Counts& counts, size_t element_bytes,
                       int ranks);

}  // namespace slime::perf
