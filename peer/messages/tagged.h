// Messages with tags that have come to an engine, and receives that wait for one: each message is
// for one receive.
//
// States of a message: here, until a receive comes that fits it, or nobody can read it any more:
// its sender has given it up, or gone. Of a receive: posted, until a message fits it, or end(). The
// oldest fits first, of both. The thread that brings the second of both gets them, and delivers the
// message.
//
// Memory: kMost messages of each peer, of a record each, 20 MiB, and the posted receives. Threads:
// any; a mutex guards all, and nothing is called while it is held.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "peer/messages/letters.h"
#include "peer/messages/sender.h"
#include "peer/moving/peer_request.h"

namespace slime {

struct TaggedMessage {
  uint64_t peer = 0;  // the handle of its sender
  uint64_t tag = 0;
  std::vector<std::byte> bytes;
  std::optional<OfferedLetter> letter;  // of a long one, whose bytes the receiver reads

  // Of a record that came over this link, with so many rails; nullopt: no correct peer sends that.
  static std::optional<TaggedMessage> from(uint64_t peer, MessageKind kind,
                                           std::span<const std::byte> payload, uint64_t link,
                                           size_t rails);
};

struct TaggedReceive {
  static constexpr uint64_t kAnyPeer = 0;  // never a handle

  uint64_t peer = kAnyPeer;
  uint64_t tag = 0, mask = 0;
  std::span<std::byte> room;
  std::shared_ptr<PeerRequest> request;

  bool fits(const TaggedMessage& message) const {
    return (peer == kAnyPeer || peer == message.peer) && ((tag ^ message.tag) & mask) == 0;
  }
};

class Tagged {
 public:
  static constexpr size_t kMost = 4096;
  // Of a message that is no letter.
  static constexpr size_t kMostBytes = MessageSender::kMostBytes - sizeof(uint64_t);

  // The message for it, else it waits. Adds peers that have to be looked at: they have messages
  // that were refused room.
  std::optional<TaggedMessage> post(const TaggedReceive& receive, std::vector<uint64_t>* peers);
  // False: there is no room for it. Else it goes to *receive, or stays here without one.
  bool put(TaggedMessage& message, std::optional<TaggedReceive>* receive);
  // The receive ends if it is still posted.
  void end(const PeerRequest* request, const Error& why);
  // The peer has gone: receives from it alone end, and its letters are dropped. Returns the nonces
  // of these.
  std::vector<uint64_t> end_of(uint64_t peer, const Error& why);
  void withdrawn(uint64_t peer, uint64_t nonce);  // its sender has given up this letter
  void drop_of(uint64_t peer);                    // it is not known any more

 private:
  template <typename Which>
  void drop(Which which);
  void left(uint64_t peer);  // a message of it

  std::mutex mutex_;
  std::list<TaggedReceive> posted_;              // the oldest first
  std::list<TaggedMessage> here_;                // the same
  std::unordered_map<uint64_t, size_t> counts_;  // of messages here, of peers with some
  std::unordered_set<uint64_t> waiting_;         // peers that were refused room
};

// Gives a message to the receive that it fits. True: the peer has to move the request now, which
// reads the message, or tells the peer that it does not.
bool deliver(const TaggedMessage& message, const TaggedReceive& receive,
             const MakeRegion& make_region);

}  // namespace slime
