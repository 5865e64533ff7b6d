// The loops of Arithmetic, compiled once per level (base/machine/simd.h). The includer defines
// SLIME_SIMD_LEVEL and SLIME_SIMD_NAME, and includes <type_traits> and arithmetic.h.

namespace slime::net::SLIME_SIMD_LEVEL {
namespace {

template <typename T>
struct [[gnu::packed, gnu::may_alias]] Unaligned {
  T value;
};

inline uint8_t swapped(uint8_t value) { return value; }
inline uint16_t swapped(uint16_t value) { return __builtin_bswap16(value); }
inline uint32_t swapped(uint32_t value) { return __builtin_bswap32(value); }
inline uint64_t swapped(uint64_t value) { return __builtin_bswap64(value); }

// Numbers are compared as T, and added as Bits<T>, the unsigned type of the same width: unsigned
// sums wrap, and an overflow of a signed sum would be undefined.
template <typename T>
using Bits = std::make_unsigned_t<T>;

template <sap::Op kOp, typename T>
Bits<T> combined(T a, T b) {
  using U = Bits<T>;
  if constexpr (kOp == sap::Op::kSum) return static_cast<U>(static_cast<U>(a) + static_cast<U>(b));
  if constexpr (kOp == sap::Op::kMin) return static_cast<U>(b < a ? b : a);
  if constexpr (kOp == sap::Op::kMax) return static_cast<U>(b > a ? b : a);
  if constexpr (kOp == sap::Op::kOr) return static_cast<U>(a | b);
}

template <typename T>
void load(std::byte* values, const std::byte* payload, size_t words) {
  using Place = Unaligned<Bits<T>>;
  auto* to = reinterpret_cast<Place*>(values);
  const auto* from = reinterpret_cast<const Place*>(payload);
  const size_t count = words * 4 / sizeof(T);
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) to[i].value = swapped(from[i].value);
}

template <typename T, sap::Op kOp>
void fold(std::byte* values, const std::byte* payload, size_t words) {
  using Place = Unaligned<Bits<T>>;
  auto* to = reinterpret_cast<Place*>(values);
  const auto* from = reinterpret_cast<const Place*>(payload);
  const size_t count = words * 4 / sizeof(T);
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) {
    const auto one = static_cast<T>(to[i].value);
    const auto other = static_cast<T>(swapped(from[i].value));
    to[i].value = combined<kOp, T>(one, other);
  }
}

#define SLIME_FOLD_ROW(T) \
  { fold<T, sap::Op::kSum>, fold<T, sap::Op::kMin>, fold<T, sap::Op::kMax>, fold<T, sap::Op::kOr> }

constexpr Arithmetic kBodies = {
    SLIME_SIMD_NAME,
    {load<int32_t>, load<uint32_t>, load<int16_t>, load<int8_t>, load<int64_t>, nullptr,
     load<uint8_t>, load<uint64_t>},
    {SLIME_FOLD_ROW(int32_t),
     SLIME_FOLD_ROW(uint32_t),
     SLIME_FOLD_ROW(int16_t),
     SLIME_FOLD_ROW(int8_t),
     SLIME_FOLD_ROW(int64_t),
     {},
     SLIME_FOLD_ROW(uint8_t),
     SLIME_FOLD_ROW(uint64_t)},
};

#undef SLIME_FOLD_ROW

}  // namespace
}  // namespace slime::net::SLIME_SIMD_LEVEL
