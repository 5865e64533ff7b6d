// The owner of the links between engines, in their handshake (link/setup/link_owner.h).
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "peer/blobs.h"
#include "peer/rings.h"
#include "transports/poller.h"

namespace slime {

// What both ends say: who they are. The engine that connects names the nonce of its own listener.
// Those who have its address know it, so nobody else can take its name among them.
struct EngineWords {
  static constexpr uint32_t kEngines = 2;  // MessageWords::purpose has another one

  uint32_t purpose = kEngines;
  uint16_t depth = 0;     // in the answer: the smaller of both ends'
  uint16_t features = 0;  // of later versions: those that both ends have
  // Peer::era() at both ends. If one is not the same as before, its engine has forgotten the other
  // one meanwhile, and counts messages from 0 on.
  uint32_t from_era = 0;
  uint32_t to_era = 0;  // in the answer
  EngineId from = {};   // the engine that connects
  Nonce proof = {};     // its listener's
  EngineId to = {};     // in the answer: the one that listens

  OwnerWords pack() const {
    static_assert(sizeof(EngineWords) == 64 && sizeof(EngineWords) <= sizeof(OwnerWords));
    OwnerWords words = {};
    std::memcpy(words.data(), this, sizeof *this);
    return words;
  }
  static EngineWords unpack(const OwnerWords& words) {
    EngineWords unpacked;
    std::memcpy(&unpacked, words.data(), sizeof unpacked);
    return unpacked;
  }
};

// How the engine that listens refuses a link while it dials one itself: the one of the engine with
// the lower id is taken.
inline constexpr char kCrossing[] = "this engine is dialing that one at the moment";

// Of each thread of an engine: pollers of its rails.
using PollerLists = std::vector<std::vector<Poller*>>;

// A peer belongs to one thread for good.
inline uint32_t thread_of(uint32_t era, const PollerLists& pollers) {
  return era % static_cast<uint32_t>(pollers.size());
}

struct LinkTerms {
  uint16_t depth = 256;          // ChannelOptions::depth
  double lifeline_seconds = 60;  // a peer without a rail is gone after that
};

// Both ends of all links of an engine. A connecting end knows whom it looks for.
class EngineOwner : public LinkOwner {
 public:
  struct Wanted {
    EngineId engine = {};
    uint32_t era = 0;  // EngineWords::from_era
  };

  EngineOwner(const EngineId& self, const Nonce& proof, const LinkTerms& terms,
              const PollerLists& pollers, std::optional<Wanted> wanted)
      : self_(self), proof_(proof), terms_(terms), pollers_(pollers), wanted_(wanted) {}

  OwnerWords offer() const override {
    return EngineWords{.depth = terms_.depth,
                       .from_era = wanted_ ? wanted_->era : 0,
                       .from = self_,
                       .proof = proof_}
        .pack();
  }
  Result<OwnerWords> answer(const OwnerWords& offer) const override {
    EngineWords words = EngineWords::unpack(offer);
    if (words.purpose != EngineWords::kEngines) {
      return fail(make_error(Status::kRemote, 0, "this address is for engines (purpose %u, not %u)",
                             EngineWords::kEngines, words.purpose));
    }
    if (words.depth == 0 || words.from == EngineId()) {
      return fail(make_error(Status::kRemote, 0, "the other engine does not say what it is"));
    }
    words.depth = std::min(words.depth, terms_.depth);
    words.features = 0;
    words.to = self_;
    return words.pack();
  }
  bool accepts(const OwnerWords& answer) const override {
    const EngineWords words = EngineWords::unpack(answer);
    return words.purpose == EngineWords::kEngines && words.depth <= terms_.depth &&
           words.depth > 0 && words.from == self_ && wanted_ && wanted_->engine == words.to &&
           wanted_->era == words.from_era;
  }
  LinkMemoryBytes memory_bytes(const OwnerWords&, bool, size_t) const override {
    return Rings::kMemory;
  }
  bool expects_peers_for_ever() const override { return true; }
  double lifeline_seconds(const OwnerWords&) const override { return terms_.lifeline_seconds; }
  uint32_t channel_depth(const OwnerWords& answer) const override {
    return EngineWords::unpack(answer).depth;
  }
  // Of the thread that has the peer, whose era at this end the words name.
  Poller* poller(const Rail& rail, const OwnerWords& answer, bool active) const override {
    const EngineWords words = EngineWords::unpack(answer);
    const auto& list = pollers_[thread_of(active ? words.from_era : words.to_era, pollers_)];
    const auto found = std::ranges::find(list, &rail, [](Poller* one) { return &one->rail(); });
    return found != list.end() ? *found : nullptr;
  }

 protected:
  const EngineId self_;

 private:
  const Nonce proof_;
  const LinkTerms terms_;
  const PollerLists& pollers_;
  const std::optional<Wanted> wanted_;
};

}  // namespace slime
