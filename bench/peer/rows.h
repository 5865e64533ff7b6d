// Rows of bench-peer in files of their own, and what all rows use.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace slime::bench {

inline constexpr size_t kLong = size_t{64} << 20;  // bytes of a long request

inline double seconds_since(uint64_t begin_ns) {
  return static_cast<double>(steady_now_ns() - begin_ns) * 1e-9;
}

void cancel_row();

}  // namespace slime::bench
