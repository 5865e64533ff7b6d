// How the ranks find each other: rank 0 listens, the others bring their cards, all get all cards.
//
//   rank 0                               rank k
//     Greeting  nonce, key wanted?  -->          closed before this: tried again until the deadline
//             <--  Joining   nonce, card, MAC
//     ... until all have come ...
//     Verdict   cards, or a reason, MAC  -->
//
// Whoever is not one of the ranks is turned away and logged, and changes nothing. Where there is a
// key (that of the switch), the MACs prove it at both ends: HMAC-SHA256 over direction, both nonces
// and the message. Without a key they are zeros, and whoever speaks this protocol is believed.
// Everything waits until a deadline.
#pragma once

#include <string>
#include <vector>

#include "aggregation/card.h"
#include "base/clock.h"
#include "base/hmac.h"
#include "base/net/socket.h"

namespace slime::aggregation {

struct Meeting {
  SocketAddress address;  // where rank 0 listens
  SecretKey key;          // may be empty
  uint64_t deadline_ns = 0;
  uint64_t patience_ns = 5'000'000'000;  // rank 0's, with a visitor that it has greeted
  const Clock& clock = SteadyClock::instance();
};

// The cards of all, in the order of ranks. At rank 0, and at the others.
Result<std::vector<Card>> host_meeting(const Meeting& meeting, const Card& own);
Result<std::vector<Card>> join_meeting(const Meeting& meeting, const Card& own);

}  // namespace slime::aggregation
