#include "peer/messages/messages.h"

#include <algorithm>

#include "base/clock.h"

namespace slime {

void Messages::after(const std::shared_ptr<PeerRequest>& request, uint64_t now_ns) {
  if (request->fetches) {
    const FetchedWords words{*request->fetches, request->given_up() ? 0U : 1U};
    tell(Message::of(MessageKind::kFetched, words), now_ns);
  }
  if (request->given_up() || request->messages.empty()) return request->end(now_ns);
  tell(request, now_ns);
}

void Messages::tell(const std::shared_ptr<PeerRequest>& request, uint64_t now_ns) {
  request->begin(now_ns);
  look_ns_ = std::min(look_ns_, request->deadline_ns);
  for (Message& message : request->begin_telling()) {
    MessageSender& to = sender_of(message.kind);
    to.add(std::move(message), request);
  }
}

// No program waits for that.
void Messages::tell(Message message, uint64_t now_ns) {
  const auto request = std::make_shared<PeerRequest>();
  request->of_engine = true;
  request->messages.push_back(std::move(message));
  tell(request, now_ns);
}

void Messages::withdraw(uint64_t now_ns) {
  for (const uint64_t nonce : tagged_.take_withdrawn()) {
    tell(Message::of(MessageKind::kWithdrawn, nonce), now_ns);
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
  withdraw(now_ns);
  events_.move(rings.events, now_ns);
}

void Messages::expire(uint64_t now_ns) {
  if (now_ns < look_ns_) return;
  uint64_t first_ns = UINT64_MAX;
  for (MessageSender* of : senders()) first_ns = std::min(first_ns, of->give_up(now_ns, nullptr));
  withdraw(now_ns);
  look_ns_ = std::max(first_ns, now_ns + kLookNs);
}

void Messages::give_up(const Error& why, uint64_t now_ns) {
  for (MessageSender* of : senders()) (void)of->give_up(now_ns, &why);
  (void)tagged_.take_withdrawn();  // the peer drops what came from here
}

void Messages::on_new_link() {
  for (MessageSender* to : senders()) to->on_new_link();
  letters_.on_new_link();
}

void Messages::forget_numbers() {
  for (MessageSender* to : senders()) to->forget_numbers();
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
    if (!fetched) return Verdict::kWrong;
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
