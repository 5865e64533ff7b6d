// The messages of one ring as they come from a peer: each is given to `take` exactly once, in the
// order of their numbers, over however many links they come.
//
// State: the number of the next one. Thread: that of the peer's link.
#pragma once

#include <cstdint>
#include <span>

#include "peer/messages/message.h"
#include "peer/ring.h"

namespace slime {

// What becomes of a message.
enum class Verdict : uint8_t {
  kTaken,
  kRefused,  // its sender is told, and it counts as taken after that
  kLater,    // it stays where it is, and so do those behind it
  kWrong,    // no correct peer sends it
};

class MessageReceiver {
 public:
  // `take(kind, payload)` returns a Verdict.
  template <typename Take>
  Status receive(Link& link, Ring& ring, Take take) {
    for (;;) {
      if (ring.refusal_told()) pass(ring);
      auto record = ring.look();
      if (!record) return link.status();
      if (!*record) return Status::kOk;
      const auto payload = (*record)->payload;
      uint64_t number = 0;
      if (payload.size() < sizeof number)
        return link.context().fail_protocol("a message cut short");
      std::memcpy(&number, payload.data(), sizeof number);
      if (number > next_) return link.context().fail_protocol("a message that leaves others out");
      const auto kind = static_cast<MessageKind>((*record)->kind);
      const bool came_before = number < next_;
      if (came_before) {
        ring.take();
        continue;
      }
      switch (kind == MessageKind::kNothing ? Verdict::kTaken
                                            : take(kind, payload.subspan(sizeof number))) {
        case Verdict::kTaken:
          pass(ring);
          break;
        case Verdict::kRefused:
          ring.refuse();
          break;
        case Verdict::kLater:
          return Status::kOk;
        case Verdict::kWrong:
          return link.context().fail_protocol("a message that means nothing");
      }
    }
  }
  void forget_numbers() { next_ = 0; }

 private:
  void pass(Ring& ring) {
    ring.take();
    ++next_;
  }

  uint64_t next_ = 0;
};

}  // namespace slime
