#include "peer/messages/sender.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

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
      return "the peer could not read it; its log may say why";
  }
}

// What a letter has behind its address, so that its receiver need not ask. By the time of the read
// this end may have given the letter up. Where a refused read ends a rail, the receiver asks.
std::span<const std::byte> keys_of(const Message& message, const LinkRails& rails,
                                   std::span<uint64_t, kMaxRails> room) {
  if (message.memory == nullptr) return {};
  for (size_t i = 0; i < rails.count(); ++i) {
    if (!rails[i].rail->caps().goes_on_after_refusal) return {};
    room[i] = rails[i].remote_key(message.memory);
  }
  return std::as_bytes(room.first(rails.count()));
}

}  // namespace

void MessageSender::move(Ring& ring, uint64_t now_ns) {
  end_taken(ring, now_ns);
  for (; in_ring_ < messages_.size(); ++in_ring_) {
    Entry& entry = messages_[in_ring_];
    if (entry.is_following() && !taken_before_) break;
    if (!put(ring, entry, first_ + in_ring_, kNoRail)) break;
    written_ = std::max(written_, in_ring_ + 1);
  }
}

// False: there is no room.
bool MessageSender::put(Ring& ring, Entry& entry, uint64_t number, size_t rail) {
  const Message& message = entry.message;
  std::array<uint64_t, kMaxRails> room;
  const auto keys = keys_of(message, ring.rails(), room);
  WrittenRegion written;
  std::span<const std::byte> before;
  auto kind = static_cast<uint16_t>(message.kind);
  if (entry.is_following()) {
    const RegionAddress& region = entry.request->remotes.front()->address;
    written = {region.region, region.nonce};
    before = bytes_of(written);
    kind |= kFollows;
  }
  const size_t bytes = sizeof number + before.size() + message.payload.size() + keys.size();
  if (bytes > Ring::kMostBytes || !ring.has_room(bytes, rail)) return false;
  entry.record = ring.put(kind, {bytes_of(number), before, message.payload, keys}, rail);
  return true;
}

bool MessageSender::follow(Ring& ring, const std::shared_ptr<PeerRequest>& request, size_t rail,
                           uint64_t now_ns) {
  end_taken(ring, now_ns);  // before another has its slots
  if (in_ring_ < messages_.size()) return false;
  Entry entry{std::move(request->messages.front()), request, {}, true};
  if (!put(ring, entry, first_ + in_ring_, rail)) {
    request->messages.front() = std::move(entry.message);
    return false;
  }
  (void)request->begin_telling();  // the entry has its only message
  messages_.push_back(std::move(entry));
  written_ = std::max(written_, ++in_ring_);
  ++open_;
  return true;
}

void MessageSender::give_back(Entry& entry) {
  --open_;
  entry.request->take_back(std::exchange(entry.message, {}));
  returned_.push_back(std::exchange(entry.request, nullptr));
  entry.follows = false;
}

void MessageSender::settle(uint64_t next) {
  if (taken_before_) return;
  taken_before_ = next;
  for (size_t i = 0; i < written_; ++i) {
    Entry& entry = messages_[i];
    if (entry.is_following() && first_ + i >= next) give_back(entry);
  }
}

void MessageSender::take_lost_back(Ring& ring, const Ring::State& peer) {
  for (size_t i = 0; i < in_ring_; ++i) {
    Entry& entry = messages_[i];
    entry.got = entry.got || ring.has_got(entry.record, peer);
    const bool got = entry.got || first_ + i < taken_before_.value_or(0);
    if (!entry.follows || !ring.is_lost(entry.record) || got) continue;
    ring.change_lost(entry.record, static_cast<uint16_t>(MessageKind::kNothing));
    if (entry.request != nullptr) give_back(entry);
    entry.follows = false;
  }
}

void MessageSender::end_taken(Ring& ring, uint64_t now_ns) {
  while (in_ring_ > 0 && ring.was_taken(messages_.front().record)) {
    SLIME_CHECK(written_ > 0);
    Entry& entry = messages_.front();
    taken(entry, ring.was_refused(entry.record), now_ns);
    messages_.pop_front();
    ++first_;
    --written_;
    --in_ring_;
  }
}

void MessageSender::taken(Entry& entry, bool refused, uint64_t now_ns) {
  if (entry.request == nullptr) {
    if (entry.message.nonce != 0 && !refused) withdrawn_.push_back(entry.message.nonce);
    return;
  }
  if (refused && entry.follows) return give_back(entry);
  if (refused) {
    entry.request->give_up(make_error(Status::kRemote, 0, "%s", why_refused(entry.message.kind)));
  } else if (entry.message.nonce != 0) {
    return fetching_.push_back(std::move(entry));
  }
  if (entry.follows) entry.request->message_followed();
  end(entry, now_ns);
}

void MessageSender::end(Entry& entry, uint64_t now_ns) {
  --open_;
  const uint64_t nonce = entry.message.nonce;
  entry.message = {};
  entry.message.nonce = nonce;  // to withdraw it
  const auto request = std::exchange(entry.request, nullptr);
  request->message_ended(now_ns);
}

// The answer may come before the count of the ring that says the letter was taken.
void MessageSender::fetched(uint64_t nonce, bool read, uint64_t now_ns) {
  const auto has_nonce = [nonce](const Entry& entry) {
    return entry.request != nullptr && entry.message.nonce == nonce && nonce != 0;
  };
  const auto end_it = [&](Entry& entry) {
    if (!read) {
      entry.request->give_up(
          make_error(Status::kRemote, 0,
                     "the peer does not read it: the receive that it came for "
                     "has ended before, or has no room for it, or there was none "
                     "when the link was lost"));
    }
    entry.message.nonce = 0;  // the peer has no use for it any more
    end(entry, now_ns);
  };
  const auto fetching = std::ranges::find_if(fetching_, has_nonce);
  if (fetching != fetching_.end()) {
    end_it(*fetching);
    fetching_.erase(fetching);
    return;
  }
  const auto written = messages_.begin() + static_cast<ptrdiff_t>(written_);
  const auto found = std::find_if(messages_.begin(), written, has_nonce);
  if (found != written) end_it(*found);
}

void MessageSender::give_up(Entry& entry, uint64_t now_ns, const Error* why) {
  entry.request->give_up(
      why != nullptr ? *why
                     : entry.request->overdue(
                           ", and the peer has not said that it took the message; it may have"));
  end(entry, now_ns);
}

// Those that were returned and move still are the mover's.
void MessageSender::add_open(Requests* to) const {
  const auto add = [to](const Entry& entry) {
    if (entry.request != nullptr && entry.request->moved()) to->push_back(entry.request);
  };
  std::ranges::for_each(messages_, add);
  std::ranges::for_each(fetching_, add);
  const auto moved = [](const auto& request) { return request->moved(); };
  std::ranges::copy_if(returned_, std::back_inserter(*to), moved);
}

uint64_t MessageSender::give_up(uint64_t now_ns, const Error* why) {
  uint64_t first_ns = UINT64_MAX;
  const auto look_at = [&](Entry& entry, bool written) {
    if (entry.request == nullptr) return;
    if (why == nullptr && now_ns < entry.request->due_ns()) {
      first_ns = std::min(first_ns, entry.request->due_ns());
    } else {
      if (written && entry.message.kind == MessageKind::kSignal)
        entry.request->may_be_carried_out();
      give_up(entry, now_ns, why);
    }
  };
  for (size_t i = 0; i < messages_.size(); ++i) look_at(messages_[i], i < written_);
  for (Entry& entry : fetching_) look_at(entry, true);
  std::erase_if(fetching_, [this](const Entry& entry) {
    if (entry.request == nullptr) withdrawn_.push_back(entry.message.nonce);
    return entry.request == nullptr;
  });
  const auto waiting = messages_.begin() + static_cast<ptrdiff_t>(written_);
  messages_.erase(
      std::remove_if(waiting, messages_.end(), [](const Entry& entry) { return entry.given_up(); }),
      messages_.end());
  return first_ns;
}

void MessageSender::forget_numbers(uint64_t now_ns) {
  const Error why = make_error(Status::kRemote, 0,
                               "the peer has removed this engine, or was another one; it may have "
                               "taken the message");
  // The link is gone, and with it what the peer had not carried out.
  const auto end_it = [&](Entry& entry) {
    if (entry.request != nullptr) give_up(entry, now_ns, &why);
  };
  std::for_each_n(messages_.begin(), written_, end_it);
  std::ranges::for_each(fetching_, end_it);
  fetching_.clear();
  // Also what this engine would have said to it.
  std::erase_if(messages_, [](const Entry& entry) { return entry.request == nullptr; });
  first_ = 0;
  written_ = in_ring_ = 0;
  taken_before_ = 0;
  withdrawn_.clear();
}

}  // namespace slime
