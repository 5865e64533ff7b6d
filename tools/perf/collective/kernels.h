// What NCCL's device kernels compute, on the CPU: reductions, and the packing and unpacking of LL
// and LL128 lines. Compiled for several instruction sets; the best one is chosen at run time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/machine/simd.h"

namespace slime::perf {

// out[i] = a[i] op b[i], and the same to out2 unless it is null. `out` may be equal to a or b.
// divisor is read by the average only: out[i] = (a[i] + b[i]) / divisor.
using ReduceFunction = void (*)(void* out, void* out2, const void* a, const void* b, size_t count,
                                uint32_t divisor);

// Lines as in NCCL's device.h. LL: two words of data, each followed by a flag; data may end in the
// middle of a line. LL128: 120 bytes of data, then an 8-byte flag.
inline constexpr size_t kLlLineBytes = 16, kLlLineData = 8;
inline constexpr size_t kLl128LineBytes = 128, kLl128LineData = 120;

struct Kernels {
  const char* name;                   // of the instruction set
  ReduceFunction reduce[10][4];       // [DataType][sum, prod, max, min]
  ReduceFunction sum_and_divide[10];  // [DataType]

  void (*pack_ll)(void* lines, const void* data, size_t bytes, uint32_t flag);
  void (*unpack_ll)(void* data, const void* lines, size_t bytes);
  // How many of `count` lines, from the first one on, carry the flag.
  size_t (*ready_ll)(const void* lines, size_t count, uint32_t flag);
  void (*pack_ll128)(void* lines, const void* data, size_t bytes, uint64_t flag);
  void (*unpack_ll128)(void* data, const void* lines, size_t bytes);
  size_t (*ready_ll128)(const void* lines, size_t count, uint64_t flag);
};

const Kernels& kernels();

// For the choice, and for tests. (AVX-512 was measured too: no faster with data from memory, slower
// with half floats.)
const SimdTables<Kernels>& kernel_levels();

}  // namespace slime::perf
