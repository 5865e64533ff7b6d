// What the programs of an engine tell its peers, and what peers have told them.
#include <cinttypes>
#include <utility>

#include "peer/engine.h"

namespace slime {

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
  auto region =
      world_->messages.make_region(std::make_shared<NoticeBytes>(std::move(bytes)), kRemoteRead);
  if (!region) return fail(std::move(region.error()));
  auto letter = std::make_shared<const Letter>(regions_, std::move(*region));
  const LetterAddress address = letter->address();
  return Message::of(MessageKind::kLetter, address, std::move(letter));
}

Result<uint64_t> Engine::notify(uint64_t peer_handle, std::span<const std::byte> notification,
                                uint64_t deadline_ns) {
  auto peer = handles_.find(peer_handle);
  if (peer == nullptr) return fail(Status::kInvalid, "no such peer (any more)");
  auto message = message_of(notification);
  if (!message) return fail(std::move(message.error()));
  auto request = new_request(deadline_ns);
  request->messages.push_back(std::move(*message));
  return hand_over(std::move(peer), std::move(request));
}

Result<uint64_t> Engine::signal(uint64_t peer_handle, const Addition& addition,
                                uint64_t deadline_ns) {
  auto peer = handles_.find(peer_handle);
  if (peer == nullptr) return fail(Status::kInvalid, "no such peer (any more)");
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
  auto request = new_request(deadline_ns);
  request->strong = addition.strong;
  const SignalWords words{region.region, region.nonce, addition.offset, addition.add};
  request->messages.push_back(Message::of(MessageKind::kSignal, words));
  return hand_over(std::move(peer), std::move(request));
}

std::vector<Fetched> Engine::notifications(size_t most) {
  std::vector<uint64_t> with_room;
  std::vector<Fetched> fetched;
  for (Notice& notice : notices_.fetch(most, &with_room)) {
    const uint64_t peer = notice.peer;
    const auto kept = std::make_shared<const Notice>(std::move(notice));
    fetched.push_back({peer, fetched_.add(kept), *kept->bytes});
  }
  for (const uint64_t handle : with_room) {
    for (auto& peer : {handles_.find(handle), listening_end_of(handle)}) {
      if (peer != nullptr) service_->attend(peer);
    }
  }
  return fetched;
}

Result<uint64_t> Engine::expect(uint64_t peer_handle, uint32_t immediate, uint64_t count,
                                uint64_t deadline_ns) {
  const auto peer = handles_.find(peer_handle);
  if (peer_handle != Expectations::kAnyPeer && peer == nullptr) {
    return fail(Status::kInvalid, "no such peer (any more)");
  }
  if (count == 0) return fail(Status::kInvalid, "it expects no immediate: count is 0");
  const auto request = new_request(deadline_ns);
  auto handle = keep(nullptr, request);
  if (!handle) return handle;
  expectations_.expect(peer_handle, immediate, count, request);
  if (peer == nullptr || peer->state() != Peer::State::kGone) return handle;
  const Peer::Report report = peer->report();
  if (report.state == Peer::State::kGone) {
    expectations_.end(request.get(),
                      make_error(Status::kRemote, 0, "%s", report.gone_because.c_str()));
  }
  return handle;
}

Result<void> Engine::forget(uint64_t peer, uint32_t immediate) {
  if (peer != Expectations::kAnyPeer && handles_.find(peer) == nullptr) {
    return fail(Status::kInvalid, "no such peer (any more)");
  }
  expectations_.forget(peer, immediate);
  return {};
}

}  // namespace slime
