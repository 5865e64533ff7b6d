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

// T says how numbers compare; U is the same width without a sign, in which sums wrap.
template <typename T>
using Bits = std::make_unsigned_t<T>;

struct Sum {
  template <typename T>
  static Bits<T> of(T a, T b) {
    return static_cast<Bits<T>>(static_cast<Bits<T>>(a) + static_cast<Bits<T>>(b));
  }
};
struct Min {
  template <typename T>
  static Bits<T> of(T a, T b) {
    return static_cast<Bits<T>>(b < a ? b : a);
  }
};
struct Max {
  template <typename T>
  static Bits<T> of(T a, T b) {
    return static_cast<Bits<T>>(b > a ? b : a);
  }
};
struct Or {
  template <typename T>
  static Bits<T> of(T a, T b) {
    return static_cast<Bits<T>>(a | b);
  }
};

template <typename T>
void load(std::byte* values, const std::byte* payload, size_t words) {
  using Place = Unaligned<Bits<T>>;
  auto* to = reinterpret_cast<Place*>(values);
  const auto* from = reinterpret_cast<const Place*>(payload);
  const size_t count = words * 4 / sizeof(T);
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) to[i].value = swapped(from[i].value);
}

template <typename T>
void seal(std::byte* values, size_t words) {
  load<T>(values, values, words);
}

template <typename T, typename O>
void fold(std::byte* values, const std::byte* payload, size_t words) {
  using Place = Unaligned<Bits<T>>;
  auto* to = reinterpret_cast<Place*>(values);
  const auto* from = reinterpret_cast<const Place*>(payload);
  const size_t count = words * 4 / sizeof(T);
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) {
    const auto one = static_cast<T>(to[i].value);
    const auto other = static_cast<T>(swapped(from[i].value));
    to[i].value = O::template of<T>(one, other);
  }
}

#define SLIME_LOAD_ROW                                                                  \
  {                                                                                     \
    load<int32_t>, load<uint32_t>, load<int16_t>, load<int8_t>, load<int64_t>, nullptr, \
        load<uint8_t>, load<uint64_t>                                                   \
  }
#define SLIME_SEAL_ROW                                                                  \
  {                                                                                     \
    seal<int32_t>, seal<uint32_t>, seal<int16_t>, seal<int8_t>, seal<int64_t>, nullptr, \
        seal<uint8_t>, seal<uint64_t>                                                   \
  }
#define SLIME_FOLD_ROW(T) \
  { fold<T, Sum>, fold<T, Min>, fold<T, Max>, fold<T, Or> }

constexpr Arithmetic kBodies = {
    SLIME_SIMD_NAME,
    SLIME_LOAD_ROW,
    {SLIME_FOLD_ROW(int32_t),
     SLIME_FOLD_ROW(uint32_t),
     SLIME_FOLD_ROW(int16_t),
     SLIME_FOLD_ROW(int8_t),
     SLIME_FOLD_ROW(int64_t),
     {},
     SLIME_FOLD_ROW(uint8_t),
     SLIME_FOLD_ROW(uint64_t)},
    SLIME_SEAL_ROW,
};

#undef SLIME_LOAD_ROW
#undef SLIME_SEAL_ROW
#undef SLIME_FOLD_ROW

}  // namespace
}  // namespace slime::net::SLIME_SIMD_LEVEL
