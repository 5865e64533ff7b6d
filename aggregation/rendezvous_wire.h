// The messages of a rendezvous: fixed sizes, in host order; the magic number tells another one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "aggregation/card.h"
#include "base/hmac.h"
#include "base/random.h"

namespace slime::aggregation {

inline constexpr uint32_t kMeetingMagic = 0x56524c53;  // "SLRV"
inline constexpr uint16_t kMeetingVersion = 1;

enum class MessageType : uint16_t { kGreeting = 1, kJoining, kVerdict };

struct Prefix {
  uint32_t magic = kMeetingMagic;
  uint16_t version = kMeetingVersion;
  uint16_t type = 0;
};
inline bool valid(const Prefix& prefix, MessageType type) {
  return prefix.magic == kMeetingMagic && prefix.version == kMeetingVersion &&
         prefix.type == static_cast<uint16_t>(type);
}

struct Greeting {
  Prefix prefix{kMeetingMagic, kMeetingVersion, static_cast<uint16_t>(MessageType::kGreeting)};
  uint32_t key_wanted = 0;
  uint32_t reserved = 0;
  Nonce nonce{};
};
struct Joining {
  Prefix prefix{kMeetingMagic, kMeetingVersion, static_cast<uint16_t>(MessageType::kJoining)};
  Nonce nonce{};
  Card card;
  Mac mac{};  // last
};
// Followed by the cards and a Mac.
struct Verdict {
  Prefix prefix{kMeetingMagic, kMeetingVersion, static_cast<uint16_t>(MessageType::kVerdict)};
  uint32_t cards = 0;   // 0: refused
  uint32_t status = 0;  // why: a Status
  std::array<char, 240> reason{};
};
static_assert(std::has_unique_object_representations_v<Greeting> && sizeof(Greeting) == 32);
static_assert(std::has_unique_object_representations_v<Joining> && sizeof(Joining) == 200);
static_assert(std::has_unique_object_representations_v<Verdict> && sizeof(Verdict) == 256);

template <typename T>
std::span<const std::byte> bytes_of(const T& message) {
  return std::as_bytes(std::span(&message, 1));
}
template <typename T>
std::span<std::byte> bytes_of(T& message) {
  return std::as_writable_bytes(std::span(&message, 1));
}

// What both ends of one connection sign with.
struct Seal {
  const SecretKey& key;
  const Nonce& host;
  const Nonce& guest;
};
// Zeros where there is no key.
Result<Mac> sign(const Seal& seal, MessageType type, std::span<const std::byte> message);
Result<bool> proves(const Seal& seal, MessageType type, std::span<const std::byte> message,
                    const Mac& mac);

}  // namespace slime::aggregation
