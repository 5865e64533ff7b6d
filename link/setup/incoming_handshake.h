// The listening end of the handshake (handshake.h) with one peer. The peer's hello has proven that
// it knows the address.
//
// States: the stages of HandshakeEnd, from kWelcome on. Thread: the one that calls
// LinkListener::accept.
#pragma once

#include <memory>

#include "base/net/visitors.h"
#include "link/setup/handshake_end.h"

namespace slime {

class IncomingHandshake final : private HandshakeEnd {
 public:
  IncomingHandshake(Devices& devices, Device& device, const Hello& hello, Fd fd,
                    const SocketAddress& from, const LinkOwner& owner,
                    int traffic_class = kNoTrafficClass);

  using HandshakeEnd::error;
  using HandshakeEnd::take;
  // kAgain: call again. kOk: take(). Anything else: error() says why.
  Status step() { return advance(); }
  bool confirmed() const { return stage_ > Stage::kConfirm; }  // by the peer
  Visit visit() const { return {from_, waits_since_ns()}; }
  const LinkId& id() const { return id_; }
  void abort() { abort_connection(std::move(fd_)); }  // the peer may connect again

 private:
  Status run(Stage stage) override;
  std::string too_late() const override {
    return "the handshake was not finished in time" + channel_failures();
  }
  Result<void> prepare_welcome(const Hello& hello);
  Status send_welcome();

  const SocketAddress from_;
  Error refusal_{Status::kOk, 0, {}};  // why the welcome refuses the peer; kOk: it does not
};

// The reason why a connection with this hello is a stranger's; nullopt: it is a peer's.
std::optional<std::string> judge_hello(const Hello& hello, const Nonce& nonce);

}  // namespace slime
