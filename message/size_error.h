// The error of a send that is longer than its receive. The ranks disagree, and each end reports it.
#pragma once

#include <cstdint>

#include "base/error.h"

namespace slime {

inline Error size_error(uint64_t sent, int tag, uint64_t capacity) {
  return make_error(
      Status::kConfig, 0,
      "a send of %llu bytes (tag %d) meets a receive of %llu bytes; the ranks disagree on a size",
      static_cast<unsigned long long>(sent), tag, static_cast<unsigned long long>(capacity));
}

}  // namespace slime
