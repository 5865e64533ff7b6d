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
  kLetter,       // payload: LetterAddress of a notification that is too long for a record, and keys
  kTagged,       // payload: the tag, 64 bits, and the message that a program sends
  kTaggedLetter,  // payload: TaggedLetter of one that is too long for a record, and keys
  kFetched,       // payload: FetchedWords
  kWithdrawn,     // payload: the nonce of a TaggedLetter that its sender has given up
};

// A bit of the kind of a message that goes right behind the bytes of a write, on the same ordered
// rail, before these are confirmed. Its payload begins with the region that was written: while it
// is there, and peers may write into it, the bytes that came before the message were not refused.
inline constexpr uint16_t kFollows = 0x8000;

struct WrittenRegion {
  uint64_t region = 0, nonce = 0;  // as in RegionAddress
};

// Memory of its sender that the peer's engine reads. Behind it the record has the keys of that
// memory, 64 bits for each rail of the link, or none; then its receiver asks for them.
struct LetterAddress {
  uint64_t region = 0, nonce = 0;  // as in RegionAddress
  uint64_t base = 0, bytes = 0;
};

struct TaggedLetter {
  uint64_t tag = 0;
  LetterAddress address;
};

// The receiver of a TaggedLetter does not need it any more.
struct FetchedWords {
  uint64_t nonce = 0;  // of its address
  uint64_t read = 0;   // 1: it has been read; 0: it will not be
};

inline constexpr size_t kMostNoticeBytes = size_t{64} << 20;

// Cuts these words off the beginning of *payload.
template <typename Words>
std::optional<Words> take_words(std::span<const std::byte>* payload) {
  Words words;
  if (payload->size() < sizeof words) return std::nullopt;
  std::memcpy(&words, payload->data(), sizeof words);
  *payload = payload->subspan(sizeof words);
  return words;
}
// The whole payload is these.
template <typename Words>
std::optional<Words> words_of(std::span<const std::byte> payload) {
  if (payload.size() != sizeof(Words)) return std::nullopt;
  return take_words<Words>(&payload);
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
  const MemoryRegion* memory = nullptr;  // of the letter, if its keys go with the message
  uint64_t nonce = 0;  // of a kTaggedLetter, which ends by kFetched or is withdrawn; else 0

  template <typename Words>
  static Message of(MessageKind kind, const Words& words,
                    std::shared_ptr<const void> letter = nullptr) {
    const auto bytes = bytes_of(words);
    return {kind, {bytes.begin(), bytes.end()}, std::move(letter)};
  }
};

}  // namespace slime
