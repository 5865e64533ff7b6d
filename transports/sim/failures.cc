// How rails and channels fail, and what becomes of the works that were on their way.
#include <algorithm>
#include <cstring>

#include "transports/sim/sim_rail.h"

namespace slime::sim {

uint64_t Network::latency_ns(const Endpoint& end, const Endpoint& peer) const {
  return std::max(end.rail->model().latency_ns, peer.rail->model().latency_ns);
}

void Network::kill(Rail& rail) {
  rail.dead_ = true;
  for (Endpoint& end : endpoints_) {
    Endpoint* peer = end.open ? find(end.peer) : nullptr;
    // Each pair once, from its active end.
    if (peer == nullptr || !end.paired || end.cut || !end.options.active) continue;
    if (end.rail != &rail && peer->rail != &rail) continue;
    end.cut = peer->cut = true;
    settle(end, Cause::kDeath);
    settle(*peer, Cause::kDeath);
    if (rail.died_of_ == Death::kSilent) continue;
    const RailModel& model = rail.model();
    const bool one_sided = random_.chance(model.one_sided_ppm);
    const Endpoint* last = random_.coin() ? &end : peer;
    for (Endpoint* each : {&end, peer}) {
      if (one_sided && each == last) continue;
      notify(*each, now_ns_ + random_.up_to(model.notice_ns), Reason::kPathDied, random_.coin());
    }
  }
}

void Network::fence(Endpoint& end) {
  run_due();
  if (end.fenced) return;
  end.fenced = true;
  if (Endpoint* peer = find(end.peer)) part(end, *peer, Reason::kPeerFenced);
  drop_unlanded(end);
  if (end.noticed) return;
  fail(end, true,
       make_error(Status::kRemote, 0, "sim rail %s: the channel was fenced at this end",
                  end.rail->caps().name.c_str()));
}

// `end` goes of its own will: what it was told is sent still arrives, the rest may.
void Network::part(Endpoint& end, Endpoint& peer, Reason reason) {
  if (!end.paired) return;
  if (!end.cut) {
    end.cut = peer.cut = true;
    settle(end, Cause::kSenderLeft);
    settle(peer, Cause::kReceiverLeft);
  }
  for (const Rail* rail : {end.rail, peer.rail}) {
    if (rail->dead() && rail->died_of_ == Death::kSilent) return;  // nobody tells the peer
  }
  const bool fenced = reason == Reason::kPeerFenced;
  notify(peer, std::max(now_ns_ + latency_ns(end, peer), end.last_arrival_ns), reason,
         fenced && random_.coin());
}

void Network::refuse(Endpoint& receiver, const Flight& flight) {
  const Work& work = flight.work;
  Endpoint* sender = find(flight.sender);
  if (!receiver.noticed) {
    fail(receiver, false,
         make_error(Status::kRemote, 0,
                    "sim rail %s: refused %u bytes that peer %s wrote to 0x%llx with key "
                    "0x%llx: no such registered memory; nothing was written",
                    receiver.rail->caps().name.c_str(), work.length, receiver.peer_label.c_str(),
                    static_cast<unsigned long long>(work.remote_address),
                    static_cast<unsigned long long>(work.remote_key)));
  }
  drop_unlanded(receiver);
  if (sender == nullptr || receiver.cut) return;
  receiver.cut = sender->cut = true;
  settle(*sender, Cause::kRefused);
  settle(receiver, Cause::kSenderLeft);
  notify(*sender, now_ns_ + latency_ns(receiver, *sender), Reason::kWriteRefused, false);
}

void Network::lose_source(Endpoint& sender, const Work& work) {
  break_locally(sender,
                make_error(Status::kInvalid, 0,
                           "sim rail %s: the %u bytes to send at %p are not in registered memory",
                           sender.rail->caps().name.c_str(), work.length,
                           static_cast<const void*>(work.local)));
}

void Network::break_locally(Endpoint& end, Error error) {
  if (!end.noticed) fail(end, true, std::move(error));
  if (Endpoint* peer = find(end.peer)) part(end, *peer, Reason::kPeerClosed);
}

void Network::fail(Endpoint& end, bool abrupt, Error error) {
  end.noticed = true;
  end.abrupt = abrupt;
  end.error = std::move(error);
}

void Network::notify(const Endpoint& end, uint64_t at_ns, Reason reason, bool abrupt) {
  schedule(at_ns, Event::Kind::kNotice, end.name, uint64_t(reason) << 1 | uint64_t{abrupt});
}

void Network::notice(Endpoint& end, Reason reason, bool abrupt) {
  if (end.noticed) return;
  static constexpr const char* kSentences[] = {
      "the path died, check cable, switch and NIC",
      "the peer closed the channel",
      "the peer fenced the channel off",
      "the peer refused a write: wrong key or bounds",
  };
  fail(end, abrupt,
       make_error(Status::kRemote, 0, "sim rail %s: channel to peer %s failed: %s",
                  end.rail->caps().name.c_str(), end.peer_label.c_str(),
                  kSentences[static_cast<size_t>(reason)]));
}

}  // namespace slime::sim
