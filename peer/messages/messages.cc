#include "peer/messages/messages.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/clock.h"

namespace slime {

void Messages::after(const std::shared_ptr<PeerRequest>& request, uint64_t now_ns) {
  request->set_moved();
  if (request->tells()) return;
  if (request->is_lost() && !request->given_up()) return returned_.push_back(request);
  if (request->fetches) answer(*request->fetches, !request->given_up());
  if (request->given_up() || request->messages.empty()) return request->end(now_ns);
  request->begin(now_ns);
  look_ns_ = std::min({look_ns_, request->due_ns(), now_ns + kLateLookNs});
  for (Message& message : request->begin_telling()) {
    MessageSender& to = sender_of(message.kind);
    to.add(std::move(message), request);
  }
}

void Messages::follow(const std::shared_ptr<PeerRequest>& request, Rings& rings, size_t rail,
                      uint64_t now_ns) {
  MessageSender& to = sender_of(request->messages.front().kind);
  if (!to.follow(ring_of(to, rings), request, rail, now_ns)) return;
  look_ns_ = std::min({look_ns_, request->due_ns(), now_ns + kLateLookNs});
}

void Messages::settle(const Numbers& taken_there) {
  for (size_t i = 0; i < taken_there.size(); ++i) senders()[i]->settle(taken_there[i]);
}

Requests Messages::take_returned() {
  Requests all = std::exchange(returned_, {});
  for (MessageSender* from : senders()) {
    std::ranges::move(from->take_returned(), std::back_inserter(all));
  }
  return all;
}

// False: its bytes may have been refused. Its sender knows, or will.
bool Messages::follows_its_bytes(MessageKind* kind, std::span<const std::byte>* payload) const {
  const auto named = static_cast<uint16_t>(*kind);
  if ((named & kFollows) == 0) return true;
  *kind = static_cast<MessageKind>(named & ~kFollows);
  const auto written = take_words<WrittenRegion>(payload);
  if (!written) return false;
  const auto region = region_of(to_.regions, written->region, written->nonce);
  return region != nullptr && (region->rights & kRemoteWrite) != 0;
}

void Messages::answer(uint64_t nonce, bool read) {
  events_.add(Message::of(MessageKind::kFetched, FetchedWords{nonce, read ? 1U : 0U}), nullptr);
}

void Messages::withdraw() {
  for (const uint64_t nonce : tagged_.take_withdrawn()) {
    events_.add(Message::of(MessageKind::kWithdrawn, nonce), nullptr);
  }
}

MessageSender& Messages::sender_of(MessageKind kind) {
  switch (kind) {
    case MessageKind::kNotice:
    case MessageKind::kLetter:
      return notices_;
    case MessageKind::kTagged:
    case MessageKind::kTaggedLetter:
      return tagged_;
    default:
      return events_;
  }
}

void Messages::move(Rings& rings, uint64_t now_ns) {
  notices_.move(rings.notices, now_ns);
  tagged_.move(rings.tagged, now_ns);
  withdraw();
  events_.move(rings.events, now_ns);
}

void Messages::expire(uint64_t now_ns) {
  if (now_ns < look_ns_) return;
  uint64_t first_ns = UINT64_MAX;
  for (MessageSender* of : senders()) first_ns = std::min(first_ns, of->give_up(now_ns, nullptr));
  look_ns_ = std::clamp(first_ns, now_ns + kLookNs, idle() ? UINT64_MAX : now_ns + kLateLookNs);
}

// Its engine may live on, and learns what became of its letters when it connects again.
void Messages::end(uint64_t peer, const Error& why, uint64_t now_ns) {
  for (MessageSender* of : senders()) (void)of->give_up(now_ns, &why);
  to_.expectations.end_of(peer, why);
  for (const uint64_t nonce : to_.tagged.end_of(peer, why)) answer(nonce, false);
}

void Messages::on_new_link(uint64_t number, uint32_t era, uint64_t now_ns) {
  if (era != era_) forget_peer(now_ns);
  link_ = number;
  era_ = era;
  for (MessageSender* to : senders()) to->on_new_link();
  letters_.on_new_link();
}

void Messages::forget_peer(uint64_t now_ns) {
  era_ = 0;
  for (MessageSender* to : senders()) to->forget_numbers(now_ns);
  for (MessageReceiver* from : {&events_from_, &notices_from_, &tagged_from_}) {
    from->forget_numbers();
  }
  letters_ = {};
}

Verdict Messages::take_event(uint64_t peer, MessageKind kind, std::span<const std::byte> payload) {
  if (kind == MessageKind::kSignal) {
    const auto signal = words_of<SignalWords>(payload);
    if (!signal) return Verdict::kWrong;
    return carry_out(to_.regions, *signal) ? Verdict::kTaken : Verdict::kRefused;
  }
  if (kind == MessageKind::kFetched) {
    const auto fetched = words_of<FetchedWords>(payload);
    if (!fetched || fetched->nonce == 0) return Verdict::kWrong;
    tagged_.fetched(fetched->nonce, fetched->read != 0, steady_now_ns());
    return Verdict::kTaken;
  }
  if (kind == MessageKind::kWithdrawn) {
    const auto nonce = words_of<uint64_t>(payload);
    if (!nonce) return Verdict::kWrong;
    to_.tagged.withdrawn(peer, *nonce);
    return Verdict::kTaken;
  }
  const auto immediate = words_of<uint32_t>(payload);
  if (kind != MessageKind::kImmediate || !immediate) return Verdict::kWrong;
  return to_.expectations.take(peer, *immediate) ? Verdict::kTaken : Verdict::kRefused;
}

}  // namespace slime
