// What earlier operations, of any type, may have left in a FIFO.
#pragma once

#include <span>

#include "tools/perf/words.h"

namespace slime::perf {

// Other values at each rank. Integers: any bits. Floating point: NaN, infinities, denormals and
// zeros; with `wild` any bits, so numbers far larger than the user's too. Those share an exponent
// with the user's last elements where a network adds in blocks, and take their precision.
void fill_garbage(DataType type, int rank, bool wild, std::span<char> memory);

}  // namespace slime::perf
