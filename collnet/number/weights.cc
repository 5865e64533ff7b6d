#include "collnet/number/weights.h"

#include <array>
#include <cstdint>

#include "switch/protocol/check.h"

namespace slime::number {
namespace {

constexpr size_t kPayloadBytes = size_t{4} * sap::kMaxLanes;

template <typename T>
constexpr auto table() {
  std::array<T, kPayloadBytes / sizeof(T)> weights{};
  for (uint32_t s = 0; s < weights.size(); ++s) {
    if constexpr (sizeof(T) == 8) {
      weights[s] = sap::weight64(s);
    } else {
      weights[s] = static_cast<T>(sap::weight(s));
    }
  }
  return weights;
}

constexpr auto kOf8 = table<uint8_t>();
constexpr auto kOf16 = table<uint16_t>();
constexpr auto kOf32 = table<uint32_t>();
constexpr auto kOf64 = table<uint64_t>();
constexpr const void* kTables[] = {kOf8.data(), kOf16.data(), kOf32.data(), kOf64.data()};

}  // namespace

const std::byte* weights(size_t width_log2, size_t first) {
  return static_cast<const std::byte*>(kTables[width_log2]) + (first << width_log2);
}

}  // namespace slime::number
