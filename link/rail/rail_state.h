// The life of one rail of a link, at one end: its state, and how many lives it has had.
//
//              take_down(): it fails, or the peer's      end(): the peer has fenced it too
//        kUp -------------------------> kFenced ------------------------------> kDown
//         ^                                ^                                      |
//         |                                | give_up(): it fails, or the peer     | begin_try():
//         |   come_up(): both ends are     | gives up                             | epoch + 1
//         |   connected                    |                                      |
//         +----------------------------- kJoining <-------------------------------+
//
// At the passive end a rail may also go from kDown to kFenced (refuse_try()), if the port has no
// carrier or the channel of a try cannot be opened. It may stay kDown with epoch + 1 (skip_try()),
// if the peer gave a try up before this end granted it.
//
// What makes reuse safe: both ends count the lives of a rail (epoch), and ignore notices about an
// earlier life. Once this end has fenced a channel, no write of the peer reaches memory over it.
// Works of an ended life are submitted again only when both ends have fenced it.
//
// Thread: that of the link.
#pragma once

#include <cstdint>
#include <utility>

#include "base/check.h"
#include "link/immediate.h"

namespace slime {

enum class RailState : uint8_t { kUp, kFenced, kDown, kJoining };

class RailLifecycle {
 public:
  // Of a rail that is connected, or not yet: both ends count it as fenced then.
  RailLifecycle(bool connected, uint64_t now_ns)
      : state_(connected ? RailState::kUp : RailState::kDown),
        was_up_(connected),
        peer_fenced_(!connected),
        since_ns_(now_ns) {}

  RailState state() const { return state_; }
  bool up() const { return state_ == RailState::kUp; }
  bool was_up() const { return was_up_; }  // in this life, or an earlier one
  bool dead() const { return state_ == RailState::kFenced || state_ == RailState::kDown; }
  uint32_t epoch() const { return epoch_; }  // of this life; at kDown: of the one that has ended
  bool peer_fenced() const { return peer_fenced_; }  // the peer has fenced this life
  uint64_t since_ns() const { return since_ns_; }    // when it last became kUp, or left kUp

  void take_down(uint64_t now_ns) {
    SLIME_CHECK(up());
    state_ = RailState::kFenced;
    since_ns_ = now_ns;
  }
  // False: it is known already.
  bool note_peer_fenced() { return !std::exchange(peer_fenced_, true); }
  void end() {
    SLIME_CHECK(state_ == RailState::kFenced && peer_fenced_);
    state_ = RailState::kDown;
  }
  void begin_try() { next(RailState::kJoining); }
  void refuse_try() { next(RailState::kFenced); }
  void skip_try() {
    next(RailState::kDown);
    peer_fenced_ = true;
  }
  void give_up() {
    SLIME_CHECK(state_ == RailState::kJoining);
    state_ = RailState::kFenced;
  }
  void come_up(uint64_t now_ns) {
    SLIME_CHECK(state_ == RailState::kJoining && !peer_fenced_);
    state_ = RailState::kUp;
    was_up_ = true;
    since_ns_ = now_ns;
  }

 private:
  void next(RailState state) {
    SLIME_CHECK(state_ == RailState::kDown && peer_fenced_);
    state_ = state;
    epoch_ = RailLife::next(epoch_);
    peer_fenced_ = false;
  }

  RailState state_;
  bool was_up_;
  bool peer_fenced_;
  uint32_t epoch_ = 0;
  uint64_t since_ns_;
};

}  // namespace slime
