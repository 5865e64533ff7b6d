// The messages of a rendezvous: fixed sizes, in host order. A host of another byte order sends
// another magic number, and is refused.
#pragma once

#include <poll.h>

#include <array>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include "base/deadline.h"
#include "base/random.h"
#include "rendezvous/rendezvous.h"

namespace slime::rendezvous {

inline constexpr uint32_t kMagic = 0x56524c53;  // "SLRV"
inline constexpr uint16_t kVersion = 2;

enum class MessageType : uint16_t { kGreeting = 1, kHello, kAnswer };

struct Prefix {
  uint32_t magic = kMagic;
  uint16_t version = kVersion;
  MessageType type{};
};
struct Greeting {
  Prefix prefix{.type = MessageType::kGreeting};
  uint32_t key_wanted = 0;
  uint32_t reserved = 0;
  Nonce nonce{};
};
struct Hello {
  Prefix prefix{.type = MessageType::kHello};
  uint32_t rank = 0, ranks = 0;
  uint32_t blob_bytes = 0;
  uint32_t reserved = 0;
  Nonce nonce{};
  std::array<std::byte, kMaxBlobBytes> blob{};
  Mac mac{};  // last
};
enum class Outcome : uint16_t {
  kGathered,  // the bytes: of each rank its blob, after its length as a uint32_t
  kRefused,   // why this rank is none of the group
  kFailed,    // why there is no group
};
// Followed by so many bytes and a Mac.
struct Answer {
  Prefix prefix{.type = MessageType::kAnswer};
  Outcome outcome{};
  uint16_t status = 0;  // a Status
  uint32_t bytes = 0;
};
static_assert(std::has_unique_object_representations_v<Greeting> && sizeof(Greeting) == 32);
static_assert(std::has_unique_object_representations_v<Hello> && sizeof(Hello) == 4168);
static_assert(std::has_unique_object_representations_v<Answer> && sizeof(Answer) == 16);

template <typename T>
std::span<const std::byte> bytes_of(const T& message) {
  return std::as_bytes(std::span(&message, 1));
}
template <typename T>
std::span<std::byte> bytes_of(T& message) {
  return std::as_writable_bytes(std::span(&message, 1));
}
inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// fault_of() a message of another version.
inline constexpr char kOtherVersion[] =
    "it speaks another version of the rendezvous; use the same libnet-slime on all hosts";
// The reason why these first bytes cannot begin a message of this type; nullptr: they can.
const char* fault_of(std::span<const std::byte> begun, MessageType type);

// The content of an answer. Nothing: it is not that of so many ranks.
std::vector<std::byte> pack_blobs(std::span<const std::string> blobs);
std::optional<std::vector<std::string>> unpack_blobs(std::span<const std::byte> content,
                                                     uint32_t ranks);

// What both ends of one connection sign with.
struct Signer {
  const SecretKey& key;
  Nonce host, member;

  // Zeros where there is no key.
  Result<Mac> sign(MessageType type, std::span<const std::byte> message) const;
  // Fails with a sentence where the MAC is wrong. `who` begins it.
  Result<void> check(MessageType type, std::span<const std::byte> message, const Mac& mac,
                     const std::string& who) const;
};
inline std::span<const std::byte> signed_part(const Hello& hello) {
  return bytes_of(hello).first(sizeof hello - sizeof hello.mac);
}

inline constexpr int kPollMs = 20;

// Repeats `step` until it answers something but kAgain. kAgain: a step that began after the
// deadline (base/deadline.h) still found nothing. `fd`: its connection, which may change.
template <typename Step>
Status repeat_until(const Deadline& deadline, const Fd& fd, short events, Step step) {
  for (;;) {
    const Deadline::Look look(deadline);
    const Status status = step();
    if (status != Status::kAgain || look.expired()) return status;
    pollfd waited{fd.get(), events, 0};
    (void)::poll(&waited, 1, kPollMs);
  }
}

}  // namespace slime::rendezvous
