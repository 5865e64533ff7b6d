// Channels whose rails are paired by their numbers.
#pragma once

#include <vector>

#include "link/setup/channel_set.h"

namespace slime::test {

inline std::vector<RailPair> pairs_in_order(uint32_t channels, Device& active, Device& passive) {
  std::vector<RailPair> pairs(channels);
  for (uint32_t i = 0; i < channels; ++i) {
    pairs[i] = {static_cast<uint8_t>(i % active.rails().size()),
                static_cast<uint8_t>(i % passive.rails().size())};
  }
  return pairs;
}

}  // namespace slime::test
