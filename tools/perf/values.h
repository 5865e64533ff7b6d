// The data of checked runs, and what must come out. Every element is a function of (rank, index,
// repetition), so the expected result is computed from the definition, element by element, in
// integers or doubles: nothing is shared with the loops in kernels.cc that are being checked.
// Inputs are chosen so that the result is exact in whatever order the ranks are combined.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tools/perf/words.h"

namespace slime::perf {

struct Pattern {
  DataType type = DataType::kFloat32;
  RedOp op = RedOp::kNone;  // kNone: ranks' elements are not combined, and any bits will do
  int ranks = 2;
  uint32_t repetition = 0;  // another one gives other values
};

// Elements [first, first + count) of the input of `rank`.
void fill(const Pattern& pattern, int rank, uint64_t first, size_t count, void* out,
          Heartbeat* heartbeat);

// Of `got`, how many elements differ from elements [first, first + count) of the input of `source`
// (kNone), or of the combination of all ranks' inputs.
uint64_t count_wrong(const Pattern& pattern, int source, uint64_t first, size_t count,
                     const void* got, Heartbeat* heartbeat);

// 1 in every element: sums, products and averages of ones stay cheap for the processor, whatever
// the number of operations (no denormals), so timed runs use it.
void fill_ones(DataType type, size_t bytes, void* out);

// What earlier operations, of any type, may have left in a FIFO; other values at each rank.
// Integers: any bits. Floating point: NaN, infinities, denormals and zeros; with `wild` any bits,
// so numbers far larger than the user's too. Where a network adds in blocks, such a number and the
// user's last elements share an exponent, and the user's elements lose precision.
void fill_garbage(DataType type, int rank, bool wild, std::span<char> memory);

inline constexpr size_t kValuesPerBeat = 1024;

// What an output holds before a checked run.
inline constexpr int kPoison = 0xdb;
// How many elements do not hold the poison any more.
uint64_t count_overwritten(DataType type, std::span<const char> memory);

}  // namespace slime::perf
