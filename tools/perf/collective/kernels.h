// What NCCL's device kernels compute, on the CPU: reductions, and the packing and unpacking of LL
// and LL128 lines.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/machine/simd.h"
#include "tools/perf/words.h"

namespace slime::perf {

// out[i] = a[i] op b[i]; kAvg: (a[i] + b[i]) / divisor, which nothing else reads. `out` is equal to
// an input or apart from both.
struct Operands {
  RedOp op;
  void* out;
  const void *a, *b;
  size_t count;
  uint32_t divisor;
};
struct Reductions {
  const char* name;  // of the instruction set
  void (*of[kDataTypes])(const Operands&);
};
const SimdTables<Reductions>& reductions();

// Lines as in NCCL's device.h. LL: two words of data, each followed by a flag; data may end in the
// middle of a line. LL128: 120 bytes of data, then an 8-byte flag. Simple sends the data as it is.
struct Line {
  size_t bytes, data;
};
inline Line line_of(Protocol protocol) {
  static constexpr std::array<Line, kProtocols> kLines = {{{16, 8}, {128, 120}, {1, 1}}};
  return kLines[static_cast<size_t>(protocol)];
}
void pack(Protocol protocol, void* lines, const void* data, size_t bytes, uint64_t flag);
// These two not for Simple.
void unpack(Protocol protocol, void* data, const void* lines, size_t bytes);
// How many of `count` lines, from the first one on, carry the flag.
size_t ready_lines(Protocol protocol, const void* lines, size_t count, uint64_t flag);

}  // namespace slime::perf
