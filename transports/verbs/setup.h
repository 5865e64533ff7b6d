// Set-up of a verbs channel: the states of its queue pairs, and the hellos of both ends.
//
// Stages
//   kNew        queue pairs are in INIT, begin() has not been called
//   kGreeting   the first end (ChannelOptions): RTR, waiting for the other's hello
//               the other end: RTS; its hello is on its way
//   kDone       RTS at both ends
// The set-up fails where one of its calls does, or is_late().
//
// The channel reads the completions, and gives this class that of the peer's hello.
//
// Thread: that of the channel.
#pragma once

#include <cstdint>
#include <memory>

#include "base/deadline.h"
#include "transports/rail.h"
#include "transports/verbs/lanes.h"
#include "transports/verbs/wire.h"

namespace slime::verbs {

class Setup {
 public:
  // `lanes`: of the channel, which have been opened when open() is called.
  Setup(const VerbsRail& rail, const ChannelOptions& options, std::shared_ptr<const Port> port,
        Lanes& lanes);

  Result<void> open();  // fills in own()
  const Endpoint& own() const { return own_; }
  const Endpoint& peer() const { return peer_; }  // from begin() on

  // The first call connects the queue pairs; others do nothing.
  Result<void> begin(const ChannelAddress& peer);
  Result<void> take_hello(const ibv_wc& completion);  // the set-up is done then
  // NCCL_SLIME_CONNECT_TIMEOUT since begin().
  bool is_late() const { return deadline_.passed(); }
  Error timeout_error() const;

 private:
  enum class Stage : uint8_t { kNew, kGreeting, kDone };

  Result<void> greet();

  const VerbsRail& rail_;
  const ChannelOptions options_;
  const std::shared_ptr<const Port> port_;
  Lanes& lanes_;
  Stage stage_ = Stage::kNew;
  Endpoint own_, peer_;
  Path path_;
  Deadline deadline_{SteadyClock::instance(), 0};
};

}  // namespace slime::verbs
