// Number formats of in-network allreduce: a tensor's elements to the integers that a switch can
// add, and sums back to elements. All work is on one packet of payload: `lanes` big-endian 32-bit
// words (sap.h). Integers travel as they are, and sums of them are exact modulo 2^width. Floats are
// scaled by a power of two that all workers know, and rounded to integers of 32 or 16 bits; integer
// sums do not depend on the order, so every rank gets the same bits whatever the path.
//
// Blocks. A block of floats, half a packet, shares an exponent x, the greatest of all workers':
//
//     x = floor(log2(max |v|)), never below -126;   -127 (sap::kExponentOfZero): only zeros
//
// For fp32 and bf16 that is IEEE's own exponent, 127 for FLT_MAX: the whole range fits eight bits
// unsaturated. The least e with |v| < 2^e is x + 1. Denormals of fp32 and bf16 have x = -126.
//
// Scale. 2^k with k = b - 1 - c - (x + 1), b bits a lane, c = ceil(log2(n)), n workers in all.
// q = v * 2^k is exact (in double; in float, if v has 16 bits), rounded to nearest even, clamped to
// +-floor((2^(b-1) - 1) / n), for v of 16 bits to the next float within: no sum overflows, whatever
// n and v. The sum is scaled back exactly and rounded once, to nearest even, to the type: beyond
// its range by half an ulp it is infinity.
//
// Error of a result against the exact sum: at most n * 2^(c + x + 1 - b), which is half a unit of
// 2^-k for each worker, and half an ulp of the type. It is a whole unit for each worker where the
// clamp cuts more off than rounding could: n a power of two, and >= 64 for fp16 in 16 bits, >= 512
// for bf16 in 16 bits and fp32. Blocks of denormals in 32 bits are exact: fp32 for n <= 128, others
// always. A sum of 0 gives +0; -0 goes in as 0; a negative sum may round to -0.
//
// 16 bits a lane. With p bits of significand (bf16 8, fp16 11), what the lanes add to the error is
// at most half an ulp of the block's greatest value, 2^(x - p), where n * 2^c <= 2^(15 - p):
// for bf16 up to 8 workers, for fp16 up to 4. Numbers down to x - (15 - p - c) are carried exactly
// (bf16: 2^6 below the greatest at n = 2, 2^4 at n = 8), those below 2^(x + c - 15) as nothing.
//
// Special blocks (NaN, infinity) must not be packed. If they are: numbers within the clamp, the
// same on every processor. The same holds for values beyond the exponent.
//
// Thread rules: pure functions. Rounding mode and flush-to-zero of the calling thread do not
// matter. Buffers need no alignment, and must not overlap.
#pragma once

#include "collnet/number/data_type.h"

namespace slime::number {

// Bits per lane of 16-bit floats: 32 or 16.
enum class LaneWidth : uint8_t { kWide, kNarrow };

// Whether narrow lanes add at most half an ulp of a block's greatest value to the error.
bool narrow_suffices(DataType type, uint32_t workers);

// Who decides about lanes: the same at all workers of a job. kAuto: narrow for bf16 where that
// suffices. Not for fp16: its 11 bits of significand would mostly be lost for smaller numbers.
enum class HalfBits : uint8_t { k32, k16, kAuto };
LaneWidth lane_width_of(DataType type, uint32_t workers, HalfBits bits);

// What goes on the wire for this type. `width` counts for fp16 and bf16 only.
sap::Format format_of(DataType type, LaneWidth width = LaneWidth::kWide);

inline constexpr uint32_t kMaxWorkers = 1 << 14;  // a narrow lane has one bit left then

// How the elements of a packet travel; the same on all workers of a job.
struct Coding {
  DataType type = DataType::kFloat32;
  sap::Format format = sap::Format::kI32;  // format_of(type, ...)
  uint32_t lanes = 0;                      // words of payload: two blocks, of 32-bit numbers each
  uint32_t workers = 0;                    // whose contributions are added, in the whole tree
};

// Whether there can be such packets. The functions below ask for nothing but this.
bool is_valid(const Coding& coding);

// Elements in a full packet; a block has half of them.
size_t packet_elements(const Coding& coding);

struct Block {
  int8_t exponent = sap::kExponentOfZero;  // x above, over the finite values
  uint8_t special = 0;                     // sap::special: kNan, kPlusInfinity, kMinusInfinity
};

// Looks through `count` floats, in blocks of `block_elements` > 0, the last one maybe shorter:
// ceil(count / block_elements) blocks are written.
void block_exponents(DataType type, const void* elements, size_t count, size_t block_elements,
                     Block* blocks);

// `count` <= packet_elements() elements to a payload of 4 * lanes bytes. What they do not fill is
// neutral: 0, or the least or greatest number for a max or min. Floats can only be summed.
// `exponents` are those of the packet's two blocks; integers need none.
// Answers the payload's part of the check: sap::check_of(format, payload, 0), for sums.
uint32_t pack(const Coding& coding, ReduceOp op, const int8_t* exponents, const void* elements,
              size_t count, std::byte* payload);

// The reverse, of sums: the payload's first `count` numbers to elements.
void unpack(const Coding& coding, const int8_t* exponents, const std::byte* payload, void* elements,
            size_t count);

// sap::check_of(format, payload, 0), but fast: ask sap::agrees() before unpacking.
uint32_t check_image(sap::Format format, const std::byte* payload, uint32_t lanes);

}  // namespace slime::number
