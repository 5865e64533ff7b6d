#include "peer/messages/tagged.h"

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "peer/messages/posted.h"

namespace slime {

std::optional<TaggedMessage> TaggedMessage::from(uint64_t peer, MessageKind kind,
                                                 std::span<const std::byte> payload, uint64_t link,
                                                 size_t rails) {
  if (kind == MessageKind::kTaggedLetter) {
    const auto words = take_words<TaggedLetter>(&payload);
    if (!words || words->address.bytes == 0) return std::nullopt;
    auto letter = OfferedLetter::from(words->address, payload, link, rails);
    if (!letter) return std::nullopt;
    return TaggedMessage{peer, words->tag, {}, std::move(letter)};
  }
  const auto tag = take_words<uint64_t>(&payload);
  if (kind != MessageKind::kTagged || !tag) return std::nullopt;
  return TaggedMessage{peer, *tag, {payload.begin(), payload.end()}, std::nullopt};
}

// A message that is refused room is looked at again: this receive may be the one that it fits.
std::optional<TaggedMessage> Tagged::post(const TaggedReceive& receive,
                                          std::vector<uint64_t>* peers) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(
      here_, [&](const TaggedMessage& message) { return receive.fits(message); });
  std::optional<TaggedMessage> fits;
  if (found == here_.end()) {
    posted_.push_back(receive);
  } else {
    fits = std::move(*found);
    here_.erase(found);
    left(fits->peer);
  }
  peers->insert(peers->end(), waiting_.begin(), waiting_.end());
  waiting_.clear();
  return fits;
}

bool Tagged::put(TaggedMessage& message, std::optional<TaggedReceive>* receive) {
  const std::lock_guard lock(mutex_);
  const uint64_t now_ns = steady_now_ns();
  const auto found = std::ranges::find_if(posted_, [&](const TaggedReceive& one) {
    return one.fits(message) && now_ns < one.request->due_ns();
  });
  if (found != posted_.end()) {
    *receive = std::move(*found);
    posted_.erase(found);
    return true;
  }
  size_t& count = counts_[message.peer];
  if (count == kMost) {
    waiting_.insert(message.peer);
    return false;
  }
  ++count;
  here_.push_back(std::move(message));
  return true;
}

void Tagged::end(const PeerRequest* request, const Error& why) {
  std::unique_lock lock(mutex_);
  const auto ended = take_out(
      posted_, [request](const TaggedReceive& one) { return one.request.get() == request; });
  lock.unlock();
  end_all(ended, why);
}

std::vector<uint64_t> Tagged::end_of(uint64_t peer, const Error& why) {
  std::vector<uint64_t> nonces;
  std::unique_lock lock(mutex_);
  const auto ended =
      take_out(posted_, [peer](const TaggedReceive& one) { return one.peer == peer; });
  drop([&](const TaggedMessage& one) {
    if (one.peer != peer || !one.letter) return false;
    nonces.push_back(one.letter->address.nonce);
    return true;
  });
  lock.unlock();
  end_all(ended, why);
  return nonces;
}

void Tagged::withdrawn(uint64_t peer, uint64_t nonce) {
  const std::lock_guard lock(mutex_);
  drop([=](const TaggedMessage& one) {
    return one.peer == peer && one.letter && one.letter->address.nonce == nonce;
  });
}

void Tagged::drop_of(uint64_t peer) {
  const std::lock_guard lock(mutex_);
  drop([peer](const TaggedMessage& one) { return one.peer == peer; });
  waiting_.erase(peer);
}

template <typename Which>
void Tagged::drop(Which which) {
  std::erase_if(here_, [&](const TaggedMessage& one) {
    if (!which(one)) return false;
    left(one.peer);
    return true;
  });
}

void Tagged::left(uint64_t peer) {
  const auto count = counts_.find(peer);
  if (--count->second == 0) counts_.erase(count);
}

bool deliver(const TaggedMessage& message, const TaggedReceive& receive,
             const MakeRegion& make_region) {
  PeerRequest& request = *receive.request;
  const size_t bytes = message.letter ? message.letter->address.bytes : message.bytes.size();
  request.set_source(message.peer, message.tag);
  if (message.letter) request.fetches = message.letter->address.nonce;
  if (bytes > receive.room.size()) {
    request.give_up(make_error(Status::kInvalid, 0,
                               "the message has %zu bytes, and the receive has room for %zu; the "
                               "message is gone",
                               bytes, receive.room.size()));
  } else if (message.letter) {
    auto region = make_region(receive.room.first(bytes), 0, nullptr);
    if (region) {
      set_letter(*message.letter, std::move(*region), &request);
    } else {
      request.give_up(std::move(region.error()));
    }
  } else {
    if (bytes > 0) std::memcpy(receive.room.data(), message.bytes.data(), bytes);
    request.received(bytes);
  }
  if (message.letter) return true;
  request.end(steady_now_ns());
  return false;
}

}  // namespace slime
