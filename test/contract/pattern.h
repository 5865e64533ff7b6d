// Bytes that can be told from each other: every work of a test carries its own sequence.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace slime::contract {

inline uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// The sequence of a key, which begins again after kWords. No power of two is a multiple of that, so
// a piece that is misplaced by whole frames or pages does not fit.
class Sequence {
 public:
  Sequence(uint64_t key, size_t bytes) {
    const size_t words = std::min((bytes + 7) / 8, kWords);
    for (size_t i = 0; i < words; ++i) words_[i] = mix(key * 0x9e3779b97f4a7c15 + i + 1);
  }
  // Calls use(offset, sequence, count) for each piece of `bytes` until it returns false.
  template <typename Use>
  void along(size_t bytes, Use use) const {
    for (size_t i = 0; i < bytes; i += sizeof words_) {
      const auto* const from = reinterpret_cast<const std::byte*>(words_.data());
      if (!use(i, from, std::min(sizeof words_, bytes - i))) return;
    }
  }

 private:
  static constexpr size_t kWords = 521;
  std::array<uint64_t, kWords> words_;
};

inline void fill(std::span<std::byte> bytes, uint64_t key) {
  Sequence(key, bytes.size()).along(bytes.size(), [&](size_t i, const std::byte* from, size_t n) {
    std::memcpy(&bytes[i], from, n);
    return true;
  });
}

// Where `bytes` first differ from the sequence of `key`.
inline std::optional<size_t> first_difference(std::span<const std::byte> bytes, uint64_t key) {
  std::optional<size_t> difference;
  Sequence(key, bytes.size()).along(bytes.size(), [&](size_t i, const std::byte* from, size_t n) {
    if (std::memcmp(&bytes[i], from, n) == 0) return true;
    difference = i;
    while (bytes[*difference] == from[*difference - i]) ++*difference;
    return false;
  });
  return difference;
}

}  // namespace slime::contract
