#include "test/collnet/simulation/random_reduction.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <type_traits>

namespace slime::test {
namespace {

constexpr size_t kGuardBytes = 16;  // behind every output
constexpr std::byte kUntouched{0xa5};

// The upper half of a float32.
struct Bfloat16 {
  uint16_t bits;
};
double value_of(float value) { return value; }
double value_of(Bfloat16 value) { return std::bit_cast<float>(uint32_t{value.bits} << 16); }

template <typename T>
T load(const std::vector<std::byte>& bytes, uint64_t element) {
  T value;
  std::memcpy(&value, bytes.data() + element * sizeof(T), sizeof value);
  return value;
}

// Of either sign, from 2^-spread to 2^(spread + 1).
uint32_t any_float(std::mt19937_64& random, uint32_t spread) {
  const uint64_t bits = random();
  const auto exponent = static_cast<uint32_t>(127 - spread + (bits >> 32) % (2 * spread + 1));
  return static_cast<uint32_t>(bits & 0x807fffff) | exponent << 23;
}

uint32_t any_special(std::mt19937_64& random) {
  constexpr uint32_t kSpecial[] = {0x7fc00000, 0x7f800000, 0xff800000};
  return kSpecial[random() % 3];
}

ReduceOp any_op(DataType type, std::mt19937_64& random) {
  constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax};
  return is_float(type) ? ReduceOp::kSum : kOps[random() % 4];
}

// Around the edges of a packet and of a turn through all slots.
uint64_t any_count(uint64_t packet, uint64_t slots, std::mt19937_64& random) {
  const uint64_t turn = packet * slots;
  const uint64_t counts[] = {
      0,    1,        packet - 1,    packet,   packet + 1,   turn - 1,
      turn, turn + 1, turn + packet, 2 * turn, 2 * turn + 1, random() % (3 * turn)};
  return counts[random() % std::size(counts)];
}

template <typename T>
T reduced(ReduceOp op, T one, T other) {
  using Unsigned = std::make_unsigned_t<T>;
  if (op == ReduceOp::kMin) return std::min(one, other);
  if (op == ReduceOp::kMax) return std::max(one, other);
  return static_cast<T>(static_cast<Unsigned>(one) + static_cast<Unsigned>(other));
}

const char* name_of(DataType type) {
  constexpr const char* kNames[kDataTypes] = {"int8",   "uint8",   "int32",   "uint32",  "int64",
                                              "uint64", "float16", "float32", "bfloat16"};
  return kNames[static_cast<uint8_t>(type)];
}

}  // namespace

RandomReduction::RandomReduction(const Shape& shape, std::mt19937_64& random) : shape_(shape) {
  constexpr DataType kTypes[] = {DataType::kInt32,   DataType::kInt64, DataType::kUint64,
                                 DataType::kInt8,    DataType::kUint8, DataType::kFloat32,
                                 DataType::kBfloat16};
  type_ = kTypes[random() % std::size(kTypes)];
  op_ = any_op(type_, random);
  in_place_ = random() % 2;
  per_packet_ = Payload(type_, op_, shape.lanes, shape.workers, shape.half_bits, shape.formats)
                    .elements_per_packet();
  count_ = any_count(per_packet_, shape.slots, random);
  bytes_ = count_ * element_bytes(type_);
  inputs_.assign(shape.workers, std::vector<std::byte>(bytes_));
  if (is_float(type_))
    fill_floats(random);
  else
    fill_whole(random);
  for (const auto& one : inputs_) {
    outputs_.emplace_back(bytes_ + kGuardBytes, kUntouched);
    if (in_place_) std::copy(one.begin(), one.end(), outputs_.back().begin());
  }
}

// Some have 64-bit numbers that differ in two bits of their upper words at most.
void RandomReduction::fill_whole(std::mt19937_64& random) {
  const uint64_t kept = random() % 2 ? ~uint64_t{0} : 0x80000001'ffffffff;
  for (auto& one : inputs_) {
    for (size_t at = 0; at < one.size(); at += sizeof(uint64_t)) {
      const uint64_t bits = random() & kept;
      std::memcpy(one.data() + at, &bits, std::min(sizeof bits, one.size() - at));
    }
  }
}

// Numbers of like size, or far apart, or zeros among them; now and then NaN and infinities.
void RandomReduction::fill_floats(std::mt19937_64& random) {
  constexpr uint32_t kSpreads[] = {2, 10, 60};
  const uint32_t spread = kSpreads[random() % 3];
  const uint64_t zeros = random() % 4 ? 0 : 1 + random() % 8;  // of 8
  const size_t size = element_bytes(type_);
  const auto put = [&](uint32_t rank, uint64_t element, uint32_t bits) {
    const uint32_t kept = size == 2 ? bits >> 16 : bits;  // little-endian, as all that we run on
    std::memcpy(inputs_[rank].data() + element * size, &kept, size);
  };
  for (uint32_t rank = 0; rank < shape_.workers; ++rank) {
    for (uint64_t i = 0; i < count_; ++i) {
      put(rank, i, zeros && random() % 8 < zeros ? 0 : any_float(random, spread));
    }
  }
  if (random() % 4 || count_ == 0) return;
  for (uint64_t some = 1 + random() % 4; some > 0; --some) {
    put(static_cast<uint32_t>(random() % shape_.workers), random() % count_, any_special(random));
  }
}

Operation RandomReduction::operation(uint32_t rank) {
  std::byte* const output = outputs_[rank].data();
  return {.send = in_place_ ? output : inputs_[rank].data(),
          .receive = output,
          .count = count_,
          .type = type_,
          .op = op_};
}

std::string RandomReduction::violation() const {
  if (std::string found = place_violation(); !found.empty()) return found;
  switch (type_) {
    case DataType::kInt32:
      return whole_violation<int32_t>();
    case DataType::kInt64:
      return whole_violation<int64_t>();
    case DataType::kUint64:
      return whole_violation<uint64_t>();
    case DataType::kInt8:
      return whole_violation<int8_t>();
    case DataType::kUint8:
      return whole_violation<uint8_t>();
    case DataType::kFloat32:
      return float_violation<float>();
    default:
      return float_violation<Bfloat16>();
  }
}

std::string RandomReduction::place_violation() const {
  for (uint32_t rank = 0; rank < shape_.workers; ++rank) {
    const auto& output = outputs_[rank];
    const auto end = output.begin() + static_cast<std::ptrdiff_t>(bytes_);
    if (std::any_of(end, output.end(), [](std::byte byte) { return byte != kUntouched; })) {
      return words() + ": rank " + std::to_string(rank) + " has bytes behind its output";
    }
  }
  return {};
}

template <typename T>
std::string RandomReduction::whole_violation() const {
  for (uint64_t i = 0; i < count_; ++i) {
    T want = load<T>(inputs_[0], i);
    for (uint32_t rank = 1; rank < shape_.workers; ++rank) {
      want = reduced(op_, want, load<T>(inputs_[rank], i));
    }
    for (uint32_t rank = 0; rank < shape_.workers; ++rank) {
      const T got = load<T>(outputs_[rank], i);
      if (got != want) return wrong(rank, i, static_cast<double>(got), static_cast<double>(want));
    }
  }
  return {};
}

template <typename T>
double RandomReduction::greatest(uint64_t first, uint64_t end) const {
  double greatest = 0;
  for (const auto& one : inputs_) {
    for (uint64_t i = first; i < end; ++i) {
      const double magnitude = std::fabs(value_of(load<T>(one, i)));
      if (std::isfinite(magnitude)) greatest = std::max(greatest, magnitude);
    }
  }
  return greatest;
}

// collnet/number/number.h, with the packet's greatest number for the block's.
double RandomReduction::lanes_error(double greatest) const {
  if (greatest == 0) return 0;
  const bool narrow = number::lane_width_of(type_, shape_.workers, shape_.half_bits) ==
                          number::LaneWidth::kNarrow &&
                      sap::has_format(shape_.formats, sap::Format::kI16);
  const int c = std::bit_width(shape_.workers - 1), x = std::ilogb(greatest);
  return shape_.workers * std::ldexp(1, c + x + 1 - (narrow ? 16 : 32));
}

template <typename T>
std::string RandomReduction::float_violation() const {
  const double half_ulp = std::ldexp(1, -static_cast<int>(significand_bits(type_)));
  double error = 0;
  for (uint64_t i = 0; i < count_; ++i) {
    if (i % per_packet_ == 0) {
      error = lanes_error(greatest<T>(i, std::min(i + per_packet_, count_)));
    }
    double sum = 0;
    for (const auto& one : inputs_) sum += value_of(load<T>(one, i));
    const double got = value_of(load<T>(outputs_[0], i));
    const bool right = std::isnan(sum) ? std::isnan(got)
                       : std::isinf(sum)
                           ? got == sum
                           : std::fabs(got - sum) <= error + (std::fabs(sum) + error) * half_ulp;
    if (!right) return wrong(0, i, got, sum);
  }
  for (uint32_t rank = 1; rank < shape_.workers; ++rank) {
    if (outputs_[rank] == outputs_[0]) continue;
    return words() + ": rank " + std::to_string(rank) + " has other bits than rank 0";
  }
  return {};
}

std::string RandomReduction::wrong(uint32_t rank, uint64_t element, double got, double want) const {
  char text[160];
  std::snprintf(text, sizeof text, ": rank %u has %.17g at element %llu, not %.17g", rank, got,
                static_cast<unsigned long long>(element), want);
  return words() + text;
}

std::string RandomReduction::words() const {
  constexpr const char* kPlaces[] = {"out of place", "in place"};
  const char* const op = op_ == ReduceOp::kSum ? "sum" : op_ == ReduceOp::kMin ? "min" : "max";
  return std::string(op) + " of " + std::to_string(count_) + " " + name_of(type_) + ", " +
         kPlaces[in_place_];
}

}  // namespace slime::test
