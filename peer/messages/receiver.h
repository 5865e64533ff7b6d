// The messages of one ring as they come from a peer: each is given to `take` exactly once, in the
// order of their numbers, over however many links they come.
//
// State: the number of the next one, and which of the last ones were refused: when the link goes
// before the sender has learned that, it sends them again, and they are refused again. A sender has
// no more than a ring of them.
// Thread: that of the peer's link.
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
  // `take(number, kind, payload)` returns a Verdict.
  template <typename Take>
  Status receive(Link& link, Ring& ring, Take take) {
    for (;;) {
      if (ring.refusal_seen()) pass(ring, refusing_, true);
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
      Verdict verdict = Verdict::kTaken;
      if (number < next_) {
        if (was_refused(number)) verdict = Verdict::kRefused;
      } else if (kind != MessageKind::kNothing) {
        verdict = take(number, kind, payload.subspan(sizeof number));
      }
      switch (verdict) {
        case Verdict::kTaken:
          pass(ring, number, false);
          break;
        case Verdict::kRefused:
          refusing_ = number;
          ring.refuse();
          break;
        case Verdict::kLater:
          return Status::kOk;
        case Verdict::kWrong:
          return link.context().fail_protocol("a message that means nothing");
      }
    }
  }
  uint64_t next() const { return next_; }
  void forget_numbers() { *this = {}; }

 private:
  static uint32_t bit(uint64_t number) { return uint32_t{1} << number % Ring::kSlots; }
  bool was_refused(uint64_t number) const {
    return next_ - number <= Ring::kSlots && (refused_ & bit(number)) != 0;
  }
  void pass(Ring& ring, uint64_t number, bool refused) {
    ring.take();
    if (number != next_) return;  // it came before
    refused_ = refused ? refused_ | bit(number) : refused_ & ~bit(number);
    ++next_;
  }

  uint64_t next_ = 0;
  uint64_t refusing_ = 0;
  uint32_t refused_ = 0;  // of the last ones, a bit each
};

}  // namespace slime
