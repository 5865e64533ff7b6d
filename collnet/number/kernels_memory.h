// Elements and numbers as the kernels read and write them: at any address, in either byte order.
#pragma once

#include <cstddef>
#include <cstdint>

namespace slime::number {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are swapped unconditionally");

// Elements and numbers in memory, at any address and of any type. (A type that is merely declared
// unaligned loses that in templates.)
struct Memory8 {
  using Unsigned = uint8_t;
  using Signed = int8_t;
  struct __attribute__((packed, may_alias)) Loose {
    Unsigned value;
  };
  static Unsigned swapped(Unsigned value) { return value; }
};
struct Memory16 {
  using Unsigned = uint16_t;
  using Signed = int16_t;
  struct __attribute__((packed, may_alias)) Loose {
    Unsigned value;
  };
  static Unsigned swapped(Unsigned value) { return __builtin_bswap16(value); }
};
struct Memory32 {
  using Unsigned = uint32_t;
  using Signed = int32_t;
  struct __attribute__((packed, may_alias)) Loose {
    Unsigned value;
  };
  static Unsigned swapped(Unsigned value) { return __builtin_bswap32(value); }
};
struct Memory64 {
  using Unsigned = uint64_t;
  struct __attribute__((packed, may_alias)) Loose {
    Unsigned value;
  };
  static Unsigned swapped(Unsigned value) { return __builtin_bswap64(value); }
};

inline float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }
inline uint32_t bits_of(float value) { return __builtin_bit_cast(uint32_t, value); }

}  // namespace
}  // namespace slime::number
