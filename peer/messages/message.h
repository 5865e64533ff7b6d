// Messages from one engine to another, and their records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "peer/region.h"

namespace slime {

enum class MessageKind : uint16_t {
  kNothing = 1,  // was one that its sender has given up
  kImmediate,    // payload: the immediate, 32 bits
  kNotice,       // payload: the notification
  kSignal,       // payload: SignalWords (signal.h)
  kLetter,       // payload: LetterAddress of a notification that is too long for a record
};

// A notification that the peer's engine reads from this one's memory.
struct LetterAddress {
  uint64_t region = 0, nonce = 0;  // as in RegionAddress
  uint64_t base = 0, bytes = 0;
};

inline constexpr size_t kMostNoticeBytes = size_t{64} << 20;

template <typename Words>
std::optional<Words> words_of(std::span<const std::byte> payload) {
  Words words;
  if (payload.size() != sizeof words) return std::nullopt;
  std::memcpy(&words, payload.data(), sizeof words);
  return words;
}
template <typename Words>
std::span<const std::byte> bytes_of(const Words& words) {
  return std::as_bytes(std::span(&words, 1));
}

struct Message {
  MessageKind kind = MessageKind::kNothing;
  std::vector<std::byte> payload;
  // Memory that the peer reads, until the message has ended.
  std::shared_ptr<const void> letter;

  bool is_event() const { return kind == MessageKind::kImmediate || kind == MessageKind::kSignal; }

  template <typename Words>
  static Message of(MessageKind kind, const Words& words,
                    std::shared_ptr<const void> letter = nullptr) {
    const auto bytes = bytes_of(words);
    return {kind, {bytes.begin(), bytes.end()}, std::move(letter)};
  }
};

}  // namespace slime
