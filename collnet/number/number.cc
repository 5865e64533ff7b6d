#include "collnet/number/number.h"

#include <algorithm>
#include <bit>
#include <cstring>

#ifndef __x86_64__
#include <cfenv>
#endif

#include "collnet/number/kernels.h"
#include "switch/protocol/check.h"

namespace slime::number {
namespace {

// Round to nearest even, denormals kept, no traps, for as long as this lives. The thread belongs to
// a process that may have asked for something else, such as torch.set_flush_denormal(True); ranks
// would differ in their results.
#ifdef __x86_64__
class FloatEnvironment {
 public:
  FloatEnvironment() : before_(__builtin_ia32_stmxcsr()) {
    if (!is_default()) __builtin_ia32_ldmxcsr(kDefault);
  }
  ~FloatEnvironment() {
    if (!is_default()) __builtin_ia32_ldmxcsr(before_);
  }

 private:
  // Intel SDM volume 1, 10.2.3: all exceptions masked. The low six bits report past exceptions.
  static constexpr unsigned kDefault = 0x1f80, kReports = 0x3f;
  bool is_default() const { return (before_ & ~kReports) == kDefault; }

  unsigned before_;
};
#else
class FloatEnvironment {
 public:
  FloatEnvironment() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~FloatEnvironment() { std::fesetenv(&before_); }

 private:
  std::fenv_t before_;
};
#endif

FloatKind kind_of(DataType type) {
  return type == DataType::kFloat16 ? kHalf : type == DataType::kFloat32 ? kSingle : kBfloat;
}

size_t width_log2(sap::Format format) { return std::countr_zero(sap::width_of(format) / 8); }

// 2^exponent, for exponents of normal doubles.
double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(1023 + exponent) << 52);
}

// k of number.h.
int scale_exponent(const Coding& coding, int8_t exponent) {
  const int bits = static_cast<int>(sap::width_of(coding.format));
  return bits - 1 - std::bit_width(coding.workers - 1) - (exponent + 1);
}

int32_t limit_of(const Coding& coding) {
  const uint32_t greatest = (1u << (sap::width_of(coding.format) - 1)) - 1;
  return static_cast<int32_t>(greatest / coding.workers);
}

// floor(log2(v)) of the finite v >= 0 with these bits, as number.h defines x.
int8_t exponent_of(FloatKind kind, uint32_t magnitude) {
  if (magnitude == 0) return sap::kExponentOfZero;
  const int digits = std::bit_width(magnitude);
  if (kind == kHalf) {
    // Denormals are multiples of 2^-24.
    return static_cast<int8_t>(magnitude < 0x400 ? digits - 25
                                                 : static_cast<int>(magnitude >> 10) - 15);
  }
  const int biased = static_cast<int>(magnitude >> (kind == kSingle ? 23 : 7));
  return static_cast<int8_t>(std::max(biased, 1) - 127);
}

// The part of a packet's elements that is in block 0 or 1.
struct Part {
  size_t first, count;
};
Part part_of(const Coding& coding, size_t count, size_t block) {
  const size_t size = packet_elements(coding) / 2, first = block * size;
  return {first, std::min(count - std::min(count, first), size)};
}

uint64_t pack_floats(const Coding& coding, const int8_t* exponents, const std::byte* elements,
                     size_t count, std::byte* payload) {
  const size_t width = width_log2(coding.format);
  const auto quantise = kernels().quantise[kind_of(coding.type)][width - 1];
  const FloatEnvironment environment;
  uint64_t sum = 0;
  for (size_t block = 0; block < 2; ++block) {
    const Part part = part_of(coding, count, block);
    if (part.count == 0) break;
    const Scale scale = {power_of_two(scale_exponent(coding, exponents[block])), limit_of(coding)};
    sum += quantise(payload + (part.first << width),
                    elements + part.first * element_bytes(coding.type), part.count, scale,
                    weights(width, part.first));
  }
  return sum;
}

void unpack_floats(const Coding& coding, const int8_t* exponents, const std::byte* payload,
                   std::byte* elements, size_t count) {
  const size_t width = width_log2(coding.format);
  const auto dequantise = kernels().dequantise[kind_of(coding.type)][width - 1];
  const FloatEnvironment environment;
  for (size_t block = 0; block < 2; ++block) {
    const Part part = part_of(coding, count, block);
    if (part.count == 0) break;
    dequantise(elements + part.first * element_bytes(coding.type), payload + (part.first << width),
               part.count, power_of_two(-scale_exponent(coding, exponents[block])));
  }
}

// Neutral numbers: all bytes alike but for the first one of each number, the highest.
void fill_neutral(const Coding& coding, ReduceOp op, std::byte* from, const std::byte* end) {
  if (from == end) return;
  const bool is_signed = coding.type == DataType::kInt8 || coding.type == DataType::kInt32 ||
                         coding.type == DataType::kInt64;
  // The greatest number for a minimum, the least one for a maximum; signed, the sign is turned.
  const std::byte rest{static_cast<unsigned char>(op == ReduceOp::kMin ? 0xff : 0)};
  std::memset(from, static_cast<int>(rest), static_cast<size_t>(end - from));
  if (!is_signed || (op != ReduceOp::kMin && op != ReduceOp::kMax)) return;
  for (; from != end; from += element_bytes(coding.type)) *from = rest ^ std::byte{0x80};
}

}  // namespace

bool narrow_suffices(DataType type, uint32_t workers) {
  const uint64_t error = uint64_t{workers} << std::bit_width(workers - 1);
  return element_bytes(type) == 2 && is_float(type) &&
         error <= uint64_t{1} << (15 - significand_bits(type));
}

LaneWidth lane_width_of(DataType type, uint32_t workers, HalfBits bits) {
  const bool narrow =
      bits == HalfBits::k16 ||
      (bits == HalfBits::kAuto && type == DataType::kBfloat16 && narrow_suffices(type, workers));
  return narrow ? LaneWidth::kNarrow : LaneWidth::kWide;
}

sap::Format format_of(DataType type, LaneWidth width) {
  using enum sap::Format;
  constexpr sap::Format kFormats[kDataTypes] = {kI8, kU8, kI32, kU32, kI64, kU64, kI32, kI32, kI32};
  const bool narrow = width == LaneWidth::kNarrow && element_bytes(type) == 2;
  return narrow ? kI16 : kFormats[static_cast<uint8_t>(type)];
}

bool is_valid(const Coding& coding) {
  return static_cast<uint8_t>(coding.type) < kDataTypes &&
         (coding.format == format_of(coding.type, LaneWidth::kWide) ||
          coding.format == format_of(coding.type, LaneWidth::kNarrow)) &&
         coding.lanes > 0 && coding.lanes % 2 == 0 && coding.lanes <= sap::kMaxLanes &&
         coding.workers > 0 && coding.workers <= kMaxWorkers;
}

size_t packet_elements(const Coding& coding) {
  return size_t{coding.lanes} * 32 / sap::width_of(coding.format);
}

void block_exponents(DataType type, const void* elements, size_t count, size_t block_elements,
                     Block* blocks) {
  const FloatKind kind = kind_of(type);
  const auto find = kernels().find[kind];
  const auto* from = static_cast<const std::byte*>(elements);
  while (count > 0) {
    const size_t here = std::min(count, block_elements);
    const Found found = find(from, here);
    blocks->exponent = exponent_of(kind, found.magnitude);
    blocks->special =
        static_cast<uint8_t>((found.nan ? sap::special::kNan : 0) |
                             (found.plus_infinity ? sap::special::kPlusInfinity : 0) |
                             (found.minus_infinity ? sap::special::kMinusInfinity : 0));
    from += here * element_bytes(type);
    count -= here;
    ++blocks;
  }
}

uint32_t pack(const Coding& coding, ReduceOp op, const int8_t* exponents, const void* elements,
              size_t count, std::byte* payload) {
  const auto* from = static_cast<const std::byte*>(elements);
  const size_t width = width_log2(coding.format);
  const uint64_t sum = is_float(coding.type)
                           ? pack_floats(coding, exponents, from, count, payload)
                           : kernels().pack[width](payload, from, count, weights(width, 0));
  fill_neutral(coding, op, payload + (count << width), payload + size_t{4} * coding.lanes);
  return sap::image_of(coding.format, sum);
}

void unpack(const Coding& coding, const int8_t* exponents, const std::byte* payload, void* elements,
            size_t count) {
  auto* to = static_cast<std::byte*>(elements);
  if (is_float(coding.type)) return unpack_floats(coding, exponents, payload, to, count);
  kernels().unpack[width_log2(coding.format)](to, payload, count);
}

uint32_t check_image(sap::Format format, const std::byte* payload, uint32_t lanes) {
  const size_t width = width_log2(format), count = (size_t{4} * lanes) >> width;
  return sap::image_of(format, kernels().weigh[width](payload, count, weights(width, 0)));
}

}  // namespace slime::number
