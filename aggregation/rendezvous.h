// How the ranks find each other: rank 0 listens, the others bring their introductions, all get all
// introductions.
//
//   rank 0                               rank k
//     Greeting  nonce, key wanted?  -->          closed before this: tried again until the deadline
//             <--  Joining   nonce, introduction, MAC
//     ... until all have come ...
//     Verdict   introductions, or a reason, MAC  -->
//
// A connection that is not of a rank is turned away and logged, and changes nothing. Where there is
// a key (that of the switch), the MACs prove it at both ends: HMAC-SHA256 over direction, both
// nonces and the message. Without a key they are zeros, and every connection that speaks this
// protocol counts as a rank. Everything waits until a deadline.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "aggregation/introduction.h"
#include "base/clock.h"
#include "base/hmac.h"
#include "base/net/socket.h"
#include "base/random.h"

namespace slime::aggregation {

struct MeetingPoint {
  SocketAddress address;  // where rank 0 listens
  SecretKey key;          // may be empty
  uint64_t deadline_ns = 0;
  uint64_t patience_ns = 5'000'000'000;  // rank 0's, with a visitor that it has greeted
  const Clock& clock = SteadyClock::instance();
};

// The introductions of all, in the order of ranks. At rank 0, and at the others.
Result<std::vector<Introduction>> gather_ranks(const MeetingPoint& point, const Introduction& own);
Result<std::vector<Introduction>> join_rank_0(const MeetingPoint& point, const Introduction& own);

// The messages of a rendezvous: fixed sizes, in host order; the magic number tells another one.
inline constexpr uint32_t kRendezvousMagic = 0x56524c53;  // "SLRV"
inline constexpr uint16_t kRendezvousVersion = 1;

enum class MessageType : uint16_t { kGreeting = 1, kJoining, kVerdict };

struct Prefix {
  uint32_t magic = kRendezvousMagic;
  uint16_t version = kRendezvousVersion;
  uint16_t type = 0;
};
inline bool valid(const Prefix& prefix, MessageType type) {
  return prefix.magic == kRendezvousMagic && prefix.version == kRendezvousVersion &&
         prefix.type == static_cast<uint16_t>(type);
}

struct Greeting {
  Prefix prefix{kRendezvousMagic, kRendezvousVersion,
                static_cast<uint16_t>(MessageType::kGreeting)};
  uint32_t key_wanted = 0;
  uint32_t reserved = 0;
  Nonce nonce{};
};
struct Joining {
  Prefix prefix{kRendezvousMagic, kRendezvousVersion, static_cast<uint16_t>(MessageType::kJoining)};
  Nonce nonce{};
  Introduction introduction;
  Mac mac{};  // last
};
// Followed by the introductions and a Mac.
struct Verdict {
  Prefix prefix{kRendezvousMagic, kRendezvousVersion, static_cast<uint16_t>(MessageType::kVerdict)};
  uint32_t introductions = 0;  // 0: refused
  uint32_t status = 0;         // why: a Status
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
struct MacContext {
  const SecretKey& key;
  const Nonce& rank_0;
  const Nonce& joiner;
};
// Zeros where there is no key.
Result<Mac> sign(const MacContext& context, MessageType type, std::span<const std::byte> message);
Result<bool> proves(const MacContext& context, MessageType type, std::span<const std::byte> message,
                    const Mac& mac);

}  // namespace slime::aggregation
