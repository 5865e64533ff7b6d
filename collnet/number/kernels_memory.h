// Elements and numbers as the kernels read and write them: at any address, in either byte order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace slime::number {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are swapped unconditionally");

// Elements and numbers in memory, at any address and of any type. (A type that is merely declared
// unaligned loses that in templates.)
template <typename T>
struct Memory {
  using Unsigned = T;
  using Signed = std::make_signed_t<T>;
  struct __attribute__((packed, may_alias)) Loose {
    T value;
  };
  static_assert(alignof(Loose) == 1 && sizeof(Loose) == sizeof(T));

  static T swapped(T value) {
    if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
    if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
    if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
    return value;
  }
};
using Memory8 = Memory<uint8_t>;
using Memory16 = Memory<uint16_t>;
using Memory32 = Memory<uint32_t>;
using Memory64 = Memory<uint64_t>;

inline float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }
inline uint32_t bits_of(float value) { return __builtin_bit_cast(uint32_t, value); }

}  // namespace
}  // namespace slime::number
