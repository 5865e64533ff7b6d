// Two peers (peer/peer.h) that know each other, without their engines, in virtual time: rails die
// and return, links are replaced, and ends forget each other, at random.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <memory_resource>
#include <span>
#include <utility>
#include <vector>

#include "link/setup/handshake.h"
#include "peer/peer.h"
#include "test/support/messages_end.h"
#include "test/support/rail_fates.h"

namespace slime::test {

// What an engine has for its one peer.
class PeerEnd {
 public:
  static constexpr uint64_t kHandle = 1;  // by which it knows the peer

  // `memory`: for lists of requests.
  PeerEnd(SimHost& host, std::byte id, std::byte peer_id, Expectations::Unexpected came,
          std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : messages(host.device().memory(), std::move(came)),
        host_(host),
        peer_id_(engine_id(peer_id)),
        world_{*host.devices,
               0,
               engine_id(id),
               engine_id(id),
               {},
               messages.to,
               memory,
               pollers_,
               [](uint64_t, Peer*) {},
               [](std::shared_ptr<Peer>) {},
               [](uint64_t) {},
               names_,
               "sim",
               address_of(id)} {
    forget({});
  }

  Peer& peer() { return *peer_; }
  // There is another peer now, which does not know what was before. The old one lives until it has
  // said so.
  void forget(std::vector<std::shared_ptr<Peer>> before) {
    peer_ = std::make_shared<Peer>(world_, peer_id_, std::move(before));
    peer_->set_handle(kHandle);
  }
  void remove() {
    peer_->leave(Peer::removed_here());
    messages.to.drop_of(kHandle);
    leaving_.push_back(peer_);
    forget(leaving_);
  }
  void move() {
    std::erase_if(leaving_, [](const auto& peer) { return peer->has_left(); });
    for (const auto& peer : leaving_) (void)peer->try_move();
    (void)peer_->try_move();
  }
  // What the handshake would have said of this end and the other one.
  OwnerWords words(const PeerEnd& from) const {
    EngineWords words;
    words.from_era = from.peer_->era();
    words.to_era = peer_->era();
    words.from = peer_id_;
    words.proof = peer_id_;
    return words.pack();
  }
  void attach(LinkParts parts) { peer_->attach(std::make_unique<LinkParts>(std::move(parts))); }

  // Memory of `bytes` that the peer may use by these rights.
  std::shared_ptr<Region> make_region(std::span<std::byte> memory, uint8_t rights, uint64_t nonce,
                                      MemoryKind kind = MemoryKind::kHost) {
    MemoryRange range{memory.data(), memory.size(), kind};
    range.rights = rights;
    MemoryCache& cache = host_.device().memory();
    return std::make_shared<Region>(cache, *cache.acquire(range), rights, nonce);
  }

  MessagesEnd messages;

 private:
  static EngineId engine_id(std::byte id) {
    EngineId all;
    all.fill(id);
    return all;
  }
  static std::vector<std::byte> address_of(std::byte id) {
    AddressFields fields;
    fields.nonce = engine_id(id);
    return pack({engine_id(id), std::bit_cast<LinkAddress>(fields)});
  }

  SimHost& host_;
  const EngineId peer_id_;
  const PollerLists pollers_ = PollerLists(1);
  const NamedRegions names_;
  PeerWorld world_;
  std::shared_ptr<Peer> peer_;
  std::vector<std::shared_ptr<Peer>> leaving_;
};

// Both ends change to this link at once; the one before, if there is one, is given up.
inline void attach(SimEnds made, const LinkId& id,
                   const std::array<std::unique_ptr<PeerEnd>, 2>& ends) {
  made.active.id = made.passive.id = id;
  made.active.words = ends[0]->words(*ends[1]);
  made.passive.words = ends[1]->words(*ends[0]);
  ends[0]->attach(std::move(made.active));
  ends[1]->attach(std::move(made.passive));
}

// The first link of two ends, over so many rails, whose lifeline is not answered. Returns the
// channels of the first end.
inline std::vector<const Channel*> connect_peers(
    sim::Network& network, sim::Random& random, std::array<SimHost, 2>& hosts,
    const std::array<std::unique_ptr<PeerEnd>, 2>& ends, uint32_t rails) {
  SimEnds made =
      connect(network, hosts[0], hosts[1], rails, {Rings::kMemory, Rings::kMemory, {}, true, 0});
  made.active.lifeline_dialer =
      std::make_unique<sim::LifelineCaller>(network, random, sim::LifelineModel(), [](auto) {});
  std::vector<const Channel*> channels;
  for (const auto& channel : made.active.channels) channels.push_back(channel.channel.get());
  attach(std::move(made), {}, ends);
  return channels;
}

// Both, and the link between them, which make_link() replaces. Thread: one.
class PeerLife : public RailFates {
 public:
  // Begins anew. `came(side)` is told of immediates at that end.
  template <typename Came>
  void reset(uint64_t seed, Came came) {
    for (auto& end : ends_) end.reset();
    RailFates::reset(seed);
    for (size_t side = 0; side < 2; ++side) {
      ends_[side] = std::make_unique<PeerEnd>(hosts[side], std::byte(side + 1), std::byte(2 - side),
                                              came(side));
    }
    make_link();
  }
  PeerEnd& end(size_t side) { return *ends_[side]; }
  bool up() {
    return std::ranges::all_of(
        ends_, [](const auto& end) { return end->peer().state() == Peer::State::kUp; });
  }
  void make_link() {
    SimEnds made = RailFates::make_link(Rings::kMemory, {}, [this](auto stream) {
      ends_[1]->peer().resume(link_id(), std::move(stream));
    });
    ++link_;
    attach(std::move(made), link_id(), ends_);
  }
  bool pass() {
    const auto dark = [](const auto& end) { return end->peer().report().rails_up == 0; };
    return RailFates::pass([&] { return std::ranges::any_of(ends_, dark); });
  }
  void end_all() {
    for (auto& end : ends_) end.reset();
  }

 private:
  LinkId link_id() const {
    LinkId id = {};
    std::memcpy(id.data(), &link_, sizeof link_);
    return id;
  }

  std::array<std::unique_ptr<PeerEnd>, 2> ends_;
  uint64_t link_ = 0;
};

}  // namespace slime::test
