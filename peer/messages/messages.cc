#include "peer/messages/messages.h"

#include <algorithm>

namespace slime {

void Messages::after(const std::shared_ptr<PeerRequest>& request, uint64_t now_ns) {
  if (request->given_up() || request->messages.empty()) return request->end(now_ns);
  request->begin(now_ns);
  look_ns_ = std::min(look_ns_, request->deadline_ns);
  for (Message& message : request->begin_telling()) {
    MessageSender& to = message.is_event() ? events_ : notices_;
    to.add(std::move(message), request);
  }
}

void Messages::move(Rings& rings, uint64_t now_ns) {
  events_.move(rings.events, now_ns);
  notices_.move(rings.notices, now_ns);
}

void Messages::expire(uint64_t now_ns) {
  if (now_ns < look_ns_) return;
  const uint64_t first_ns =
      std::min(events_.give_up(now_ns, nullptr), notices_.give_up(now_ns, nullptr));
  look_ns_ = std::max(first_ns, now_ns + kLookNs);
}

void Messages::give_up(const Error& why, uint64_t now_ns) {
  (void)events_.give_up(now_ns, &why);
  (void)notices_.give_up(now_ns, &why);
}

void Messages::on_new_link() {
  events_.on_new_link();
  notices_.on_new_link();
  letters_.on_new_link();
}

void Messages::forget_numbers() {
  for (MessageSender* to : {&events_, &notices_}) to->forget_numbers();
  for (MessageReceiver* from : {&events_from_, &notices_from_}) from->forget_numbers();
  letters_ = {};
}

Verdict Messages::take_event(uint64_t peer, MessageKind kind, std::span<const std::byte> payload) {
  if (kind == MessageKind::kSignal) {
    const auto signal = words_of<SignalWords>(payload);
    if (!signal) return Verdict::kWrong;
    return carry_out(to_.regions, *signal) ? Verdict::kTaken : Verdict::kRefused;
  }
  const auto immediate = words_of<uint32_t>(payload);
  if (kind != MessageKind::kImmediate || !immediate) return Verdict::kWrong;
  return to_.expectations.take(peer, *immediate) ? Verdict::kTaken : Verdict::kRefused;
}

}  // namespace slime
