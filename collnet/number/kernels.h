// The loops over elements behind number.h, compiled for several instruction sets; the best one is
// chosen at run time. All of them give the same bits. They rely on the default rounding mode and on
// denormals not being flushed, which number.cc sees to.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/machine/simd.h"

namespace slime::number {

// What a block of floats holds.
struct Found {
  uint32_t magnitude;  // bits of the greatest finite |v|
  bool nan, plus_infinity, minus_infinity;
};

// v * factor, rounded, within +-limit.
struct Scale {
  double factor;  // 2^k
  int32_t limit;
};

enum FloatKind : uint8_t { kHalf, kSingle, kBfloat, kFloatKinds };
// Of a number on the wire: index i stands for 2^i bytes.
inline constexpr size_t kWidths = 4;

// The weights are of the numbers' width and begin with that of the first number. A sum is modulo
// 2^width.
struct Kernels {
  const char* name;  // of the instruction set
  Found (*find[kFloatKinds])(const void* from, size_t count);
  // Second index: 0 for 16-bit numbers (null for single precision), 1 for 32-bit numbers.
  uint64_t (*quantise[kFloatKinds][2])(void* to, const void* from, size_t count, Scale scale,
                                       const void* weights);
  void (*dequantise[kFloatKinds][2])(void* to, const void* from, size_t count, double factor);
  // Host order to big-endian, and the reverse.
  uint64_t (*pack[kWidths])(void* to, const void* from, size_t count, const void* weights);
  void (*unpack[kWidths])(void* to, const void* from, size_t count);
  // Of big-endian numbers.
  uint64_t (*weigh[kWidths])(const void* from, size_t count, const void* weights);
};

const Kernels& kernels();  // the best that this processor has

// For the choice, and for tests.
const SimdTables<Kernels>& kernel_levels();

// The weights of switch/protocol/check.h for numbers of 2^width_log2 bytes, from number `first` on,
// for a payload of any length.
const std::byte* weights(size_t width_log2, size_t first);

}  // namespace slime::number
