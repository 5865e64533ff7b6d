// Many channels of one rail looked at by one call, so that one thread can serve them all, and sleep
// while nothing happens (Sleeper). Channels are opened on it (ChannelOptions::poller).
//
// States of a channel on a poller
//   not armed  at first. Its user polls it when it likes, and nobody is told
//   armed      by Channel::arm(). When poll() of the channel has something to report or to move,
//              Poller::poll() names it by its tag, once, and it is not armed any more. A post() or
//              poll() of the channel may end this state too
//
// So nothing is missed if a channel is polled until it reports nothing, and armed then, also after
// a post(). arm() says kAgain when something came in between. A name is a hint: there may be
// nothing after all, as when another thread has polled the channel meanwhile. It may come once more
// for one that was just disarmed or closed, and for one whose peer has closed, so a tag is no
// pointer.
//
// Threads. A poller may be used from any thread, but only one at a time may sleep on it: another's
// prepare_to_sleep() may take the event that the first waits for. A channel stays its user's:
// Poller::poll() changes nothing of it, and its own poll() does not need the poller. While a
// channel is opened on the poller, others may wait for as long as the kernel takes to make a queue
// longer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace slime {

class Rail;

class Poller {
 public:
  explicit Poller(const Rail& rail) : rail_(rail) {}
  virtual ~Poller() = default;  // after its channels, and before its rail
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // Never blocks. Returns how many tags it wrote; if that is the size of the span, there may be
  // more. Channels are named in turns: none waits for ever behind others.
  virtual size_t poll(std::span<uint64_t> tags) = 0;
  // For a thread that is about to sleep. False: poll() may name a channel already. Else the
  // descriptor becomes readable (poll(2)) when it may; -1: this rail cannot be slept on. A NIC that
  // fails as a whole may not say so there: a sleep has a limit.
  virtual bool prepare_to_sleep() { return true; }
  virtual int descriptor() const = 0;

  const Rail& rail() const { return rail_; }

 private:
  const Rail& rail_;
};

}  // namespace slime
