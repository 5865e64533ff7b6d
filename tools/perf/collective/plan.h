// What one rank does in one operation: per connection the sequence of messages, as NCCL's ring
// kernels make them (src/device/all_reduce.h, all_gather.h, reduce_scatter.h, broadcast.h,
// sendrecv.h). Pure: the same arguments give the same plan, and the plans of all ranks fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tools/perf/collective/pattern.h"
#include "tools/perf/words.h"

namespace slime::perf {

enum class Place : uint8_t { kNowhere, kFifo, kInput, kOutput };

// One message in, one message out, or both, and the work between them.
struct Step {
  size_t input_offset = 0, output_offset = 0;  // in bytes
  uint32_t bytes = 0;
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

struct Shape {
  Collective collective = Collective::kAllReduce;
  size_t element_bytes = 4;
  size_t count = 0;  // nccl-tests' "count": per rank, where the collective has
                     // per-rank parts
  int root = 0;
  int rank = 0, ranks = 2;
  int channels = 1;
  Protocol protocol = Protocol::kSimple;
  bool direct = false;
  bool in_place = false;
};

std::vector<Flow> make_plan(const Shape& shape, const BufferSizes& sizes);

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
