// The owner of a link that carries messages from the end that connected, the sender, to the end
// that listened, the receiver.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "link/setup/link_owner.h"
#include "message/records.h"

namespace slime {

// What both ends say in the handshake.
struct MessageWords {
  static constexpr uint32_t kMessages = 1;  // other purposes have other numbers

  uint32_t purpose = kMessages;
  uint32_t eager_max = 0;  // in the answer: the smaller of both ends' limits

  OwnerWords pack() const {
    static_assert(sizeof(MessageWords) <= sizeof(OwnerWords));
    OwnerWords words = {};
    std::memcpy(words.data(), this, sizeof *this);
    return words;
  }
  static MessageWords unpack(const OwnerWords& words) {
    MessageWords unpacked;
    std::memcpy(&unpacked, words.data(), sizeof unpacked);
    return unpacked;
  }
};

// `eager_max`: the longest message that this end sends, or takes, without a CTS.
class MessageOwner final : public LinkOwner {
 public:
  explicit MessageOwner(uint64_t eager_max) : eager_max_(static_cast<uint32_t>(eager_max)) {}

  OwnerWords offer() const override { return MessageWords{.eager_max = eager_max_}.pack(); }
  Result<OwnerWords> answer(const OwnerWords& offer) const override {
    MessageWords words = MessageWords::unpack(offer);
    if (words.purpose != MessageWords::kMessages) {
      return fail(make_error(Status::kRemote, 0,
                             "this address is for messages (purpose %u, not %u)",
                             MessageWords::kMessages, words.purpose));
    }
    words.eager_max = std::min(words.eager_max, eager_max_);
    return words.pack();
  }
  bool accepts(const OwnerWords& answer) const override {
    const MessageWords words = MessageWords::unpack(answer);
    return words.purpose == MessageWords::kMessages && words.eager_max <= eager_max_;
  }
  LinkMemoryBytes memory_bytes(const OwnerWords& answer, bool active,
                               size_t channels) const override {
    const size_t cts = cts_inbox_bytes(channels);
    const size_t eager = eager_inbox_bytes(MessageWords::unpack(answer).eager_max);
    return active ? LinkMemoryBytes{cts, eager} : LinkMemoryBytes{eager, cts};
  }

 private:
  const uint32_t eager_max_;
};

}  // namespace slime
