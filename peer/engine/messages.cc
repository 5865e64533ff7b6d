// What the programs of an engine tell its peers, and what peers have told them.
#include <cinttypes>
#include <utility>

#include "peer/engine/engine.h"

namespace slime {

Result<std::shared_ptr<const Letter>> Engine::letter_of(std::span<std::byte> memory,
                                                        std::shared_ptr<void> keeps) {
  auto region = world_->messages.make_region(memory, kRemoteRead, std::move(keeps));
  if (!region) return fail(std::move(region.error()));
  return std::make_shared<const Letter>(regions_, std::move(*region));
}

// A long one is registered, and the peer reads it.
Result<Message> Engine::message_of(std::span<const std::byte> notification) {
  if (notification.size() > kMostNoticeBytes) {
    return fail(Status::kInvalid,
                "a notification of %zu bytes; it has %zu at most: write the bytes to the peer, and "
                "tell it where they are",
                notification.size(), kMostNoticeBytes);
  }
  NoticeBytes bytes(notification.begin(), notification.end());
  if (bytes.size() <= MessageSender::kMostBytes) {
    return Message{MessageKind::kNotice, std::move(bytes), nullptr};
  }
  const auto copy = std::make_shared<NoticeBytes>(std::move(bytes));
  auto letter = letter_of(*copy, copy);
  if (!letter) return fail(std::move(letter.error()));
  const LetterAddress address = (*letter)->address();
  return Letter::message(MessageKind::kLetter, address, std::move(*letter));
}

Result<uint64_t> Engine::notify(uint64_t peer_handle, std::span<const std::byte> notification,
                                const Terms& terms) {
  const auto peer = known_peer(peer_handle);
  if (!peer) return fail(peer.error());
  auto message = message_of(notification);
  if (!message) return fail(std::move(message.error()));
  auto request = new_request(terms);
  request->messages.push_back(std::move(*message));
  return hand_over(*peer, std::move(request), terms);
}

Result<uint64_t> Engine::signal(uint64_t peer_handle, const Addition& addition,
                                const Terms& terms) {
  const auto peer = known_peer(peer_handle);
  if (!peer) return fail(peer.error());
  const auto imported = remotes_.find(addition.remote);
  if (imported == nullptr || imported->peer != peer_handle) {
    return fail(Status::kInvalid, "no such region of that peer (any more)");
  }
  const RegionAddress& region = imported->remote->address;
  if ((region.rights & kRemoteWrite) == 0) {
    return fail(Status::kInvalid, "that region does not let peers write");
  }
  if (!has_counter(region.base, region.bytes, addition.offset)) {
    return fail(Status::kInvalid,
                "no counter of 8 bytes lies at %" PRIu64
                ": it must be inside the region of %" PRIu64
                " bytes, at an address that is a multiple of 8",
                addition.offset, region.bytes);
  }
  auto request = new_request(terms);
  request->strong = addition.strong;
  const SignalWords words{region.region, region.nonce, addition.offset, addition.add};
  request->messages.push_back(Message::of(MessageKind::kSignal, words));
  return hand_over(*peer, std::move(request), terms);
}

std::vector<Fetched> Engine::notifications(size_t most) {
  std::vector<uint64_t> with_room;
  std::vector<Fetched> fetched;
  for (Notice& notice : notices_.fetch(most, &with_room)) {
    const uint64_t peer = notice.peer;
    const auto kept = std::make_shared<const Notice>(std::move(notice));
    fetched.push_back({peer, fetched_.add(kept), *kept->bytes});
  }
  attend(with_room);
  return fetched;
}

void Engine::attend(std::span<const uint64_t> peers) {
  for (const uint64_t handle : peers) {
    for (auto& peer : {handles_.find(handle), listening_end_of(handle)}) {
      if (peer != nullptr) attend(peer);
    }
  }
}

Result<std::shared_ptr<Peer>> Engine::known_peer(uint64_t handle) const {
  auto peer = handles_.find(handle);
  if (peer == nullptr) return fail(Status::kInvalid, "no such peer (any more)");
  return peer;
}

Result<std::shared_ptr<Peer>> Engine::peer_or_any(uint64_t handle) const {
  if (handle == TaggedReceive::kAnyPeer) return std::shared_ptr<Peer>();
  return known_peer(handle);
}

Result<uint64_t> Engine::expect(uint64_t peer_handle, uint32_t immediate, uint64_t count,
                                const Terms& terms) {
  const auto peer = peer_or_any(peer_handle);
  if (!peer) return fail(peer.error());
  if (count == 0) return fail(Status::kInvalid, "it expects no immediate: count is 0");
  const Submitted submitted{*peer, new_request(terms), terms.completion, Posted::kExpectations};
  auto handle = keep(submitted);
  if (!handle) return handle;
  expectations_.expect(peer_handle, immediate, count, submitted.request);
  watch(submitted);
  end_if_gone(*peer, submitted);
  return handle;
}

// What is posted after its peer has gone ends at once.
void Engine::end_if_gone(const std::shared_ptr<Peer>& peer, const Submitted& posted) {
  if (peer == nullptr || peer->state() != Peer::State::kGone) return;
  const Peer::Report report = peer->report();
  if (report.state != Peer::State::kGone) return;
  end_posted(posted, make_error(Status::kRemote, 0, "%s", report.gone_because.c_str()));
}

Result<void> Engine::forget(uint64_t peer, uint32_t immediate) {
  if (const auto found = peer_or_any(peer); !found) return fail(found.error());
  expectations_.forget(peer, immediate);
  return {};
}

Result<uint64_t> Engine::send(uint64_t peer_handle, std::span<const std::byte> bytes, uint64_t tag,
                              const Terms& terms) {
  const auto peer = known_peer(peer_handle);
  if (!peer) return fail(peer.error());
  Message message;
  if (bytes.size() <= Tagged::kMostBytes) {
    message = Message::of(MessageKind::kTagged, tag);
    message.payload.insert(message.payload.end(), bytes.begin(), bytes.end());
  } else {
    auto letter = letter_of({const_cast<std::byte*>(bytes.data()), bytes.size()}, nullptr);
    if (!letter) return fail(std::move(letter.error()));
    const TaggedLetter words{tag, (*letter)->address()};
    message = Letter::message(MessageKind::kTaggedLetter, words, std::move(*letter));
    message.nonce = words.address.nonce;
  }
  auto request = new_request(terms);
  if (message.letter != nullptr) request->letter_bytes = bytes.size();
  request->messages.push_back(std::move(message));
  return hand_over(*peer, std::move(request), terms);
}

Result<uint64_t> Engine::receive(const Wanted& wanted, std::span<std::byte> room,
                                 const Terms& terms) {
  const auto peer = peer_or_any(wanted.peer);
  if (!peer) return fail(peer.error());
  const Submitted submitted{*peer, new_request(terms), terms.completion, Posted::kTagged};
  auto handle = keep(submitted);
  if (!handle) return handle;
  const TaggedReceive receive{wanted.peer, wanted.tag, wanted.mask, room, submitted.request};
  std::vector<uint64_t> with_room;
  const auto message = tagged_.post(receive, &with_room);
  attend(with_room);
  watch(submitted);
  if (!message) {
    end_if_gone(*peer, submitted);
  } else if (deliver(*message, receive, world_->messages.make_region)) {
    read_letter_of(message->peer, submitted.request);
  }
  return handle;
}

// Over the end of the link from which the message came.
void Engine::read_letter_of(uint64_t sender, const std::shared_ptr<PeerRequest>& request) {
  auto from = listening_end_of(sender);
  if (from == nullptr) from = handles_.find(sender);
  if (from != nullptr) {
    if (!from->submit(request)) attend(std::move(from));
    return;
  }
  request->give_up(make_error(Status::kRemote, 0, "its sender was removed"));
  request->end(steady_now_ns());
}

}  // namespace slime
