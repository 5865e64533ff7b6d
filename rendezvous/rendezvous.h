// How the ranks of a group find each other: a host listens, each rank brings a few bytes (its
// blob), and all ranks get the blobs of all. The connections stay open for what the ranks do next.
//
//   host                                 rank k
//     Greeting  nonce, key wanted?  -->          closed before this: tried again until the deadline
//             <--  Hello     nonce, rank, blob, MAC
//     ... until all have come ...
//     Answer    the blobs of all, or a reason, MAC  -->
//
// A caller that is not of the group is turned away and logged, and changes nothing. Where there is
// a key, the MACs prove it at both ends: HMAC-SHA256 over direction, both nonces and the message.
// Without a key they are zeros, and every caller that speaks this protocol counts as a rank, unless
// the owner's judge refuses it. Everything waits until a deadline.
//
// Memory: at the host HelloPort::kPlaces hellos of 4.2 KB, and per rank two blobs of at most
// kMaxBlobBytes (one in the answer); at a rank two blobs per rank. Threads: the caller's.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/hmac.h"
#include "base/net/host.h"
#include "settings/times.h"

namespace slime::rendezvous {

inline constexpr size_t kMaxBlobBytes = 4096;

// What each end is given before they meet.
struct Terms {
  std::string where;  // the host's address, for sentences
  uint32_t rank = 0, ranks = 0;
  SecretKey key{};        // may be empty
  uint64_t limit_ns = 0;  // until all have come
  // A rank waits so much longer for the answer: the host names the missing ranks.
  uint64_t grace_ns = times::kRendezvousAnswer;
  uint64_t hello_limit_ns = times::kRunHello;  // the host's, with a caller that it has greeted
  const Clock& clock = SteadyClock::instance();
};

struct Gathered {
  std::vector<std::string> blobs;  // by rank
  std::vector<Fd> connections;     // at the host by rank; at a rank one, to the host
};

// What a caller's hello says.
struct Claim {
  uint32_t rank = 0, ranks = 0;
  std::string blob;
};
struct HostOptions {
  // The host is terms.rank and this is its blob; else every rank comes by a connection.
  std::optional<std::string> own = std::nullopt;
  // The blob that all get for this caller, usually its own; or why it is not of the group.
  std::function<Result<std::string>(const Claim&)> judge = nullptr;
  // Set: each rank comes once. The gathering fails when a rank goes away, and when judge() refuses
  // a caller for which this says true, as that caller is a rank. Not set: ranks may come again.
  std::function<bool(const Claim&)> is_rank = nullptr;
};

Result<Gathered> host_group(const Terms& terms, Fd listener, const HostOptions& options);
// The host's name may have several addresses, and may become known later than we ask.
Result<Gathered> join_group(const Terms& terms, const std::string& blob, const HostPort& host);

}  // namespace slime::rendezvous
