#include "tools/perf/collective/kernels.h"

#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

// -O2 vectorises only what is certain to pay off.
#pragma GCC optimize("O3")

#define SLIME_SIMD_LEVEL portable
#define SLIME_SIMD_NAME "portable"
#include "tools/perf/collective/kernels_body.h"
#undef SLIME_SIMD_LEVEL
#undef SLIME_SIMD_NAME

#ifdef __x86_64__
#pragma GCC push_options
#pragma GCC target("avx2,f16c")
#define SLIME_SIMD_F16C
#define SLIME_SIMD_LEVEL avx2
#define SLIME_SIMD_NAME "AVX2"
#include "tools/perf/collective/kernels_body.h"
#undef SLIME_SIMD_LEVEL
#undef SLIME_SIMD_NAME
#undef SLIME_SIMD_F16C
#pragma GCC pop_options
#endif

namespace slime::perf {
namespace {

// function(line, offset, bytes) for each line of `bytes` of data.
template <size_t kData, typename Function>
void for_each_line(size_t bytes, Function function) {
  size_t line = 0;
  for (; (line + 1) * kData <= bytes; ++line) function(line, line * kData, kData);
  if (line * kData < bytes) function(line, line * kData, bytes - line * kData);
}

// All that the network has written before this word is visible once the word is.
uint64_t word_of(const void* lines, size_t index) {
  return __atomic_load_n(static_cast<const uint64_t*>(lines) + index, __ATOMIC_ACQUIRE);
}

}  // namespace

const SimdTables<Reductions>& reductions() {
#ifdef __x86_64__
  static constexpr SimdTables<Reductions> kLevels(&portable::kReductions, &avx2::kReductions);
#else
  static constexpr SimdTables<Reductions> kLevels(&portable::kReductions);
#endif
  return kLevels;
}

void pack(Protocol protocol, void* lines, const void* data, size_t bytes, uint64_t flag) {
  auto* const to = static_cast<char*>(lines);
  const auto* const from = static_cast<const char*>(data);
  if (protocol == Protocol::kSimple) {
    std::memcpy(lines, data, bytes);
  } else if (protocol == Protocol::kLl) {
    for_each_line<8>(bytes, [=](size_t line, size_t offset, size_t part) {
      uint32_t words[2] = {};
      std::memcpy(words, from + offset, part);
      const auto low = static_cast<uint32_t>(flag);
      const uint32_t packed[4] = {words[0], low, words[1], low};
      std::memcpy(to + line * sizeof packed, packed, sizeof packed);
    });
  } else {
    for_each_line<120>(bytes, [=](size_t line, size_t offset, size_t part) {
      std::memcpy(to + line * 128, from + offset, part);
      std::memcpy(to + line * 128 + 120, &flag, sizeof flag);
    });
  }
}

void unpack(Protocol protocol, void* data, const void* lines, size_t bytes) {
  auto* const to = static_cast<char*>(data);
  const auto* const from = static_cast<const char*>(lines);
  if (protocol == Protocol::kLl) {
    for_each_line<8>(bytes, [=](size_t line, size_t offset, size_t part) {
      uint32_t packed[4];
      std::memcpy(packed, from + line * sizeof packed, sizeof packed);
      const uint32_t words[2] = {packed[0], packed[2]};
      std::memcpy(to + offset, words, part);
    });
  } else {
    for_each_line<120>(bytes, [=](size_t line, size_t offset, size_t part) {
      std::memcpy(to + offset, from + line * 128, part);
    });
  }
}

size_t ready_lines(Protocol protocol, const void* lines, size_t count, uint64_t flag) {
  const auto low = static_cast<uint32_t>(flag);
  const auto is_ready = [=](size_t line) {
    if (protocol == Protocol::kLl128) return word_of(lines, 16 * line + 15) == flag;
    return word_of(lines, 2 * line) >> 32 == low && word_of(lines, 2 * line + 1) >> 32 == low;
  };
  size_t line = 0;
  while (line < count && is_ready(line)) ++line;
  return line;
}

}  // namespace slime::perf
