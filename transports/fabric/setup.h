// Set-up of a libfabric channel, until works may be posted.
//
// Stages
//   kNew        dial() has not been called
//   kDialing    the side connection is being set up
//   kGreeting   our hello was sent, the peer's is awaited
//   kExpecting  the peer's endpoint is known; its kReady is awaited
//   kWarming    the first writes of both ends are under way: providers open connections with them,
//               and many need the polls of both ends for that
//   kDone       both writes are complete
// A stage never comes back. The set-up fails where one of its calls does, or is_late().
//
// The channel reads the messages and completions that this class takes. Works of the peer may
// arrive from kExpecting on.
//
// Thread: that of the channel.
#pragma once

#include <cstdint>
#include <span>

#include "base/deadline.h"
#include "transports/fabric/endpoint.h"
#include "transports/fabric/sender.h"
#include "transports/fabric/side_connection.h"
#include "transports/rail.h"

namespace slime::fabric {

class Setup {
 public:
  // `endpoint` and `side_connection`: of the channel; not used once the set-up is done.
  Setup(const FabricRail& rail, Endpoint& endpoint, SideConnection& side_connection,
        bool wants_confirmations);

  // kOk: our hello was sent.
  Status dial(const ChannelAddress& peer);
  bool hello_sent() const { return stage_ >= Stage::kGreeting; }
  // NCCL_SLIME_CONNECT_TIMEOUT since the first dial().
  bool is_late() const { return deadline_.passed(); }
  Error timeout_error() const;

  // Messages of the peer. False: it does not fit this stage.
  bool awaits_hello() const { return stage_ == Stage::kGreeting; }
  Result<Peer> take_hello(std::span<const uint32_t> words);
  bool take_ready();
  bool take_warm();

  bool is_warming() const { return stage_ == Stage::kWarming; }
  // Many providers open their connection, or find out what the peer can do, with the first write:
  // it must not be one that the engine waits for.
  Result<void> warm_up(Sender& sender);
  // Whether the completion with this context was that of the first write.
  bool take_completion(const void* context) {
    if (context != &warm_up_) return false;
    complete_ = true;
    return true;
  }
  // After completions were taken. True: the set-up is done.
  bool finish();

 private:
  enum class Stage : uint8_t { kNew, kDialing, kGreeting, kExpecting, kWarming, kDone };

  void send_hello();

  const FabricRail& rail_;
  Endpoint& endpoint_;
  SideConnection& side_connection_;
  const bool wants_confirmations_;
  Stage stage_ = Stage::kNew;
  Deadline deadline_{SteadyClock::instance(), 0};
  fi_context2 warm_up_ = {};                // of our first write
  bool posted_ = false, complete_ = false;  // it was
  bool told_ = false;                       // the peer, that it is complete
  bool peer_is_warm_ = false;               // the peer's is complete
};

}  // namespace slime::fabric
