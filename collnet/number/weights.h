// The weights of sap_check.h, in the width of the numbers that they belong to.
#pragma once

#include <cstddef>

namespace slime::number {

// Those of numbers of 2^width_log2 bytes, from number `first` on, for a payload of any length.
const std::byte* weights(size_t width_log2, size_t first);

}  // namespace slime::number
