// The messages to a peer and from it. They outlive its links.
//
//   events    immediates, signals    taken at once, or refused; also what becomes of letters
//   notices   notifications, letters wait until the program has fetched others
//   tagged    sends                  wait until the program has received others
//
// Thread: that of the peer's link.
#pragma once

#include <array>
#include <memory>

#include "peer/messages/expectations.h"
#include "peer/messages/letters.h"
#include "peer/messages/sender.h"
#include "peer/messages/signal.h"
#include "peer/messages/tagged.h"
#include "peer/rings.h"

namespace slime {

class Messages {
 public:
  // Deadlines are looked at so often, at most; and at least, as requests may be cancelled.
  static constexpr uint64_t kLookNs = 5'000'000, kLateLookNs = 20'000'000;

  // What has come goes there. It outlives this.
  struct To {
    const Regions& regions;
    Expectations& expectations;
    Notices& notices;
    Tagged& tagged;
    MakeRegion make_region;

    // This handle names the peer no more, or another one: what has come of it and waits.
    void drop_of(uint64_t peer) const {
      expectations.drop_of(peer);
      notices.drop_of(peer);
      tagged.drop_of(peer);
    }
  };
  explicit Messages(const To& to) : to_(to) {}

  // Further letters with tags are not taken while so many events wait for the peer: each one is
  // answered by an event. Those that are here already, and those that are being read, are answered
  // too.
  static constexpr size_t kMostAnswers = 4096;

  // Nothing of the request is under way. It ends here, or when the peer has its messages.
  void after(const std::shared_ptr<PeerRequest>& request, uint64_t now_ns);
  // The only one of a request whose pieces go over this rail follows them, if it can.
  void follow(const std::shared_ptr<PeerRequest>& request, Rings& rings, size_t rail,
              uint64_t now_ns);
  // Takes what has come. `submit` moves a request that reads a letter, or that answers one.
  template <typename Submit>
  Status receive(Rings& rings, uint64_t peer, Submit submit);
  void move(Rings& rings, uint64_t now_ns);
  void expire(uint64_t now_ns);
  // This peer has gone, for now: all requests end, also those that wait for its messages.
  void end(uint64_t peer, const Error& why, uint64_t now_ns);
  // Before the link goes: what the peer has taken has ended.
  void end_taken(Rings& rings, uint64_t now_ns) {
    on_each(rings, [&](MessageSender& to, Ring& ring) { to.end_taken(ring, now_ns); });
  }
  // `number`: of the link, among all of this peer. `era`: of its other end (EngineWords). In
  // another era than that of the link before, the peer does not know what came before.
  void on_new_link(uint64_t number, uint32_t era, uint64_t now_ns);
  uint32_t era() const { return era_; }
  // How many messages of each ring this end has taken or refused, over all links. Each end says so
  // first of all over a new one.
  using Numbers = std::array<uint64_t, 3>;
  Numbers taken() const { return {events_from_.next(), notices_from_.next(), tagged_from_.next()}; }
  void settle(const Numbers& taken_there);
  // Both ends have fenced a rail, and the peer has this. See MessageSender.
  bool has_got(const PeerRequest& request, Rings& rings, const Rings::States& peer) {
    bool got = false;
    on_each(rings, [&](const MessageSender& to, Ring& ring) {
      got |= to.has_got(request, ring, peer[ring.index()]);
    });
    return got;
  }
  void take_lost_back(Rings& rings, const Rings::States& peer) {
    on_each(rings,
            [&](MessageSender& to, Ring& ring) { to.take_lost_back(ring, peer[ring.index()]); });
  }
  // Those whose message did not reach the peer behind their pieces.
  Requests take_returned();
  // The next link is to another peer, or to one that has forgotten this engine.
  void forget_peer(uint64_t now_ns);
  void add_open(Requests* to) const {
    for (const MessageSender* from : {&events_, &notices_, &tagged_}) from->add_open(to);
    to->insert(to->end(), returned_.begin(), returned_.end());
  }
  // No request waits for the peer.
  bool idle() const {
    return events_.idle() && notices_.idle() && tagged_.idle() && returned_.empty();
  }
  bool all_told() const { return idle() && events_.waiting() == 0; }  // answers too
  bool reads_notice() const { return letters_.reads(); }

 private:
  std::array<MessageSender*, 3> senders() { return {&events_, &notices_, &tagged_}; }
  MessageSender& sender_of(MessageKind kind);
  Ring& ring_of(const MessageSender& to, Rings& rings) const {
    return &to == &events_ ? rings.events : &to == &notices_ ? rings.notices : rings.tagged;
  }
  template <typename Call>
  void on_each(Rings& rings, Call call) {
    for (MessageSender* to : senders()) call(*to, ring_of(*to, rings));
  }
  bool follows_its_bytes(MessageKind* kind, std::span<const std::byte>* payload) const;
  void answer(uint64_t nonce, bool read);
  void withdraw();
  Verdict take_event(uint64_t peer, MessageKind kind, std::span<const std::byte> payload);
  template <typename Submit>
  Verdict take_notice(uint64_t peer, uint64_t number, MessageKind kind,
                      std::span<const std::byte> payload, size_t rails, Submit submit);
  template <typename Submit>
  Verdict take_tagged(uint64_t peer, MessageKind kind, std::span<const std::byte> payload,
                      size_t rails, Submit submit);

  const To& to_;
  MessageSender events_, notices_, tagged_;
  MessageReceiver events_from_, notices_from_, tagged_from_;
  LetterReader letters_;
  Requests returned_;              // lost ones, which begin again
  uint64_t link_ = 0;              // the number of the newest
  uint32_t era_ = 0;               // of its other end; 0: no link yet
  uint64_t look_ns_ = UINT64_MAX;  // when expire() looks at all of them
};

template <typename Submit>
Status Messages::receive(Rings& rings, uint64_t peer, Submit submit) {
  const size_t rails = rings.link.rails().count();
  using Payload = std::span<const std::byte>;
  const auto event = [&](uint64_t, MessageKind kind, Payload payload) {
    return take_event(peer, kind, payload);
  };
  const auto notice = [&](uint64_t number, MessageKind kind, Payload payload) {
    return take_notice(peer, number, kind, payload, rails, submit);
  };
  const auto tagged = [&](uint64_t, MessageKind kind, Payload payload) {
    return take_tagged(peer, kind, payload, rails, submit);
  };
  const auto checked = [this](const auto& take) {
    return [this, &take](uint64_t number, MessageKind kind, Payload payload) {
      return follows_its_bytes(&kind, &payload) ? take(number, kind, payload) : Verdict::kRefused;
    };
  };
  Status status = events_from_.receive(rings.link, rings.events, checked(event));
  if (status != Status::kOk) return status;
  status = notices_from_.receive(rings.link, rings.notices, checked(notice));
  letters_.drop_before(notices_from_.next());
  if (status != Status::kOk) return status;
  // Sends have no pieces, so none follows bytes.
  return tagged_from_.receive(rings.link, rings.tagged, tagged);
}

template <typename Submit>
Verdict Messages::take_notice(uint64_t peer, uint64_t number, MessageKind kind,
                              std::span<const std::byte> payload, size_t rails, Submit submit) {
  if (kind != MessageKind::kNotice && kind != MessageKind::kLetter) return Verdict::kWrong;
  if (!to_.notices.has_room(peer)) return Verdict::kLater;
  auto bytes = std::make_shared<NoticeBytes>(payload.begin(), payload.end());
  if (kind == MessageKind::kLetter) {
    const auto address = take_words<LetterAddress>(&payload);
    if (!address) return Verdict::kWrong;
    const auto letter = OfferedLetter::from(*address, payload, link_, rails);
    if (!letter) return Verdict::kWrong;
    const Verdict verdict = letters_.read(number, *letter, to_.make_region, submit, &bytes);
    if (verdict != Verdict::kTaken) return verdict;
  }
  to_.notices.put({peer, std::move(bytes)});
  return Verdict::kTaken;
}

template <typename Submit>
Verdict Messages::take_tagged(uint64_t peer, MessageKind kind, std::span<const std::byte> payload,
                              size_t rails, Submit submit) {
  auto message = TaggedMessage::from(peer, kind, payload, link_, rails);
  if (!message) return Verdict::kWrong;
  if (message->letter && events_.waiting() >= kMostAnswers) return Verdict::kLater;
  std::optional<TaggedReceive> receive;
  if (!to_.tagged.put(*message, &receive)) return Verdict::kLater;
  if (receive && deliver(*message, *receive, to_.make_region)) submit(receive->request);
  return Verdict::kTaken;
}

}  // namespace slime
