// Bytes that can be told from each other: every work of a test carries its own sequence.
#pragma once

#include <algorithm>
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

inline uint64_t pattern_word(uint64_t key, size_t index) {
  return mix(key * 0x9e3779b97f4a7c15 + index + 1);
}

inline void fill(std::span<std::byte> bytes, uint64_t key) {
  for (size_t i = 0; i < bytes.size(); i += 8) {
    const uint64_t word = pattern_word(key, i / 8);
    std::memcpy(&bytes[i], &word, std::min<size_t>(8, bytes.size() - i));
  }
}

// Where `bytes` first differ from the sequence of `key`.
inline std::optional<size_t> first_difference(std::span<const std::byte> bytes, uint64_t key) {
  for (size_t i = 0; i < bytes.size(); i += 8) {
    const uint64_t word = pattern_word(key, i / 8);
    const size_t count = std::min<size_t>(8, bytes.size() - i);
    if (std::memcmp(&bytes[i], &word, count) == 0) continue;
    const auto* wanted = reinterpret_cast<const std::byte*>(&word);
    for (size_t k = 0; k < count; ++k) {
      if (bytes[i + k] != wanted[k]) return i + k;
    }
  }
  return std::nullopt;
}

}  // namespace slime::contract
