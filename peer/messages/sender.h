// The messages of one ring on their way to a peer: each is taken there exactly once, in the order
// in which they were added, over however many links that takes.
//
// States of a message
//   waiting   it has no number yet. Given up, it is gone
//   written   it has a number, and lies in the ring of this link, or will in that of the next.
//             Given up, its number stays, for a message of kind kNothing
//   following written behind the bytes of its request, which are not confirmed yet. If it is
//             refused, or lost before the peer got it, it goes back to its request; its number
//             stays. On the next link it is written after the peer has said what it has taken
//   fetching  a letter that is taken, and that the peer has not read yet (MessageKind::kFetched)
//   ended     the peer has taken or refused it, and does not read it any more
// The peer counts numbers, so a written one that comes again over a new link is seen there.
//
// Memory: what was added and has not ended. Thread: that of the peer's link.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "peer/messages/message.h"
#include "peer/moving/peer_request.h"
#include "peer/ring.h"

namespace slime {

class MessageSender {
 public:
  // Of the payload of a message; its number goes before it.
  static constexpr size_t kMostBytes = Ring::kMostBytes - sizeof(uint64_t);

  // The request ends when its messages have. nullptr: the engine itself says this to the peer. It
  // is never given up, and no reason to connect.
  void add(Message message, std::shared_ptr<PeerRequest> request) {
    if (request != nullptr) ++open_;
    messages_.push_back({std::move(message), std::move(request), {}});
  }
  // Writes it at once, on this rail, behind the bytes of its request. False: it is not its turn, or
  // there is no room.
  bool follow(Ring& ring, const std::shared_ptr<PeerRequest>& request, size_t rail,
              uint64_t now_ns);
  // The next link has empty rings.
  void on_new_link() {
    in_ring_ = 0;
    for (Entry& entry : messages_) entry.got = false;
    taken_before_.reset();
  }
  // The peer has taken those with lower numbers, over the links before this one. They are written
  // again, and it confirms or refuses them again by their numbers. The others did not reach it.
  void settle(uint64_t next);
  // Both ends have fenced a rail, and this is what the peer has: a message that follows the bytes
  // of this request?
  bool has_got(const PeerRequest& request, const Ring& ring, const Ring::State& peer) const {
    const auto end = messages_.begin() + static_cast<ptrdiff_t>(in_ring_);
    return std::any_of(messages_.begin(), end, [&](const Entry& entry) {
      return entry.is_following() && entry.request.get() == &request &&
             (entry.got || ring.has_got(entry.record, peer));
    });
  }
  // After that the ring has its lost records again. A following message that the peer has not got
  // goes back to its request, and its record becomes one of kind kNothing.
  void take_lost_back(Ring& ring, const Ring::State& peer);
  // Requests whose message went back to them.
  Requests take_returned() { return std::exchange(returned_, {}); }
  void end_taken(Ring& ring, uint64_t now_ns);  // what the peer has taken
  // Ends that, and writes what there is room for.
  void move(Ring& ring, uint64_t now_ns);
  // Gives up all for this reason; nullptr: those whose deadline has passed. Returns the first
  // deadline of the others.
  uint64_t give_up(uint64_t now_ns, const Error* why);
  // The peer has read the letter with this nonce, or it will not. Ignored if that was given up.
  void fetched(uint64_t nonce, bool read, uint64_t now_ns);
  // The nonces of letters that were given up when the peer had taken them, or may have.
  std::vector<uint64_t> take_withdrawn() { return std::exchange(withdrawn_, {}); }
  // The peer that counted the numbers is not there any more. What it has, or may have, ends with an
  // error; the others get new numbers.
  void forget_numbers(uint64_t now_ns);
  bool idle() const { return open_ == 0 && returned_.empty(); }
  size_t waiting() const { return messages_.size(); }  // for the peer to take them
  void add_open(Requests* to) const;                   // of the program

 private:
  struct Entry {
    Message message;
    std::shared_ptr<PeerRequest> request;  // nullptr: given up, or of the engine
    Ring::Numbers record = {};             // of this link, if it is in its ring
    bool follows = false;                  // its bytes, over some link
    bool got = false;  // by the peer, over this link; an older report of it may come later

    bool is_following() const { return follows && request != nullptr; }
    bool given_up() const { return request == nullptr && message.kind == MessageKind::kNothing; }
  };

  bool put(Ring& ring, Entry& entry, uint64_t number, size_t rail);
  void give_back(Entry& entry);
  void taken(Entry& entry, bool refused, uint64_t now_ns);
  void end(Entry& entry, uint64_t now_ns);
  void give_up(Entry& entry, uint64_t now_ns, const Error* why);

  std::deque<Entry> messages_;
  std::vector<Entry> fetching_;
  std::vector<uint64_t> withdrawn_;
  Requests returned_;
  // The peer has taken those with lower numbers on links before. Nothing: it has not said so yet.
  std::optional<uint64_t> taken_before_ = 0;
  size_t open_ = 0;     // that have a request, fetching_ too
  uint64_t first_ = 0;  // the number of the first one
  size_t written_ = 0;  // the first so many have a number
  size_t in_ring_ = 0;  // the first so many are in the ring of this link
};

}  // namespace slime
