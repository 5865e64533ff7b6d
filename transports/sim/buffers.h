// Copies of works that are kSent before they arrive. Reused by size, so that a steady load
// allocates nothing.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace slime::sim {

class Buffers {
 public:
  using Buffer = std::unique_ptr<std::byte[]>;

  Buffer take(uint32_t bytes) {
    auto& free = free_[size_class(bytes)];
    if (free.empty()) return Buffer(new std::byte[size_t{1} << size_class(bytes)]);
    Buffer buffer = std::move(free.back());
    free.pop_back();
    return buffer;
  }
  void give_back(Buffer buffer, uint32_t bytes) {
    free_[size_class(bytes)].push_back(std::move(buffer));
  }

 private:
  static size_t size_class(uint32_t bytes) {
    return bytes <= 64 ? 6 : static_cast<size_t>(std::bit_width(bytes - 1));
  }
  std::array<std::vector<Buffer>, 33> free_;
};

}  // namespace slime::sim
