#include "peer/messages/sender.h"

#include <algorithm>

#include "base/check.h"

namespace slime {
namespace {

const char* why_refused(MessageKind kind) {
  switch (kind) {
    case MessageKind::kImmediate:
      return "the peer keeps too many different immediates that its program does not expect";
    case MessageKind::kSignal:
      return "the peer has no such region (any more), or nobody may write there";
    default:
      return "the peer could not read the notification; its log may say why";
  }
}

}  // namespace

void MessageSender::move(Ring& ring, uint64_t now_ns) {
  end_taken(ring, now_ns);
  for (; in_ring_ < messages_.size() && ring.has_room(); ++in_ring_) {
    const Message& message = messages_[in_ring_].message;
    const uint64_t number = first_ + in_ring_;
    ring.put(static_cast<uint16_t>(message.kind), bytes_of(number), message.payload);
    written_ = std::max(written_, in_ring_ + 1);
  }
}

void MessageSender::end_taken(Ring& ring, uint64_t now_ns) {
  for (; base_ != ring.peer_took(); ++base_) {
    SLIME_CHECK(in_ring_ > 0 && written_ > 0);
    Entry& entry = messages_.front();
    if (entry.request != nullptr && ring.was_refused(base_)) {
      entry.request->give_up(make_error(Status::kRemote, 0, "%s", why_refused(entry.message.kind)));
    }
    if (entry.request != nullptr) end(entry, now_ns);
    messages_.pop_front();
    ++first_;
    --written_;
    --in_ring_;
  }
}

void MessageSender::end(Entry& entry, uint64_t now_ns) {
  --open_;
  entry.message = {};
  const auto request = std::exchange(entry.request, nullptr);
  request->message_ended(now_ns);
}

uint64_t MessageSender::give_up(uint64_t now_ns, const Error* why) {
  uint64_t first_ns = UINT64_MAX;
  for (Entry& entry : messages_) {
    if (entry.request == nullptr) continue;
    if (why == nullptr && now_ns < entry.request->deadline_ns) {
      first_ns = std::min(first_ns, entry.request->deadline_ns);
      continue;
    }
    entry.request->give_up(why != nullptr
                               ? *why
                               : make_error(Status::kTimeout, 0,
                                            "its deadline has passed, and the peer has not said "
                                            "that it took the message; it may have"));
    end(entry, now_ns);
  }
  const auto waiting = messages_.begin() + static_cast<ptrdiff_t>(written_);
  messages_.erase(std::remove_if(waiting, messages_.end(),
                                 [](const Entry& entry) { return entry.request == nullptr; }),
                  messages_.end());
  return first_ns;
}

void MessageSender::forget_numbers() {
  std::erase_if(messages_, [](const Entry& entry) { return entry.request == nullptr; });
  first_ = 0;
  written_ = in_ring_ = 0;
  base_ = 0;
}

}  // namespace slime
