#include "tools/perf/p2p/pattern.h"

namespace slime::perf::p2p {
namespace {

std::byte pattern(uint64_t offset, uint32_t salt) {
  return static_cast<std::byte>((offset * 0x9e3779b97f4a7c15 >> 56) + salt);
}

}  // namespace

void fill_pattern(std::byte* memory, uint64_t bytes, uint32_t salt) {
  for (uint64_t i = 0; i < bytes; ++i) memory[i] = pattern(i, salt);
}

uint64_t count_wrong(const std::byte* memory, const Layout& layout, uint32_t in_pieces,
                     uint32_t between) {
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < layout.bytes(); ++i) {
    const bool inside = i % layout.stride < layout.piece;
    wrong += memory[i] != pattern(i, inside ? in_pieces : between);
  }
  return wrong;
}

}  // namespace slime::perf::p2p
