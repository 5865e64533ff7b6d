// The listening end of the handshake (handshake.h) with one visitor: it becomes the receiver.
#pragma once

#include <memory>
#include <string>

#include "base/net/visitors.h"
#include "engine/setup/handshake.h"

namespace slime {

class IncomingHandshake {
 public:
  IncomingHandshake(Fabric& fabric, Device& device, const Nonce& nonce, Accepted accepted,
                    const CommOptions& options = {});

  // kAgain: call again. kOk: take() the comm. Anything else: error() says why; proven() tells a
  // peer that failed from a stranger.
  Status step();
  std::unique_ptr<RecvComm> take();
  bool proven() const { return state_ > State::kHello; }
  const Error& error() const { return error_; }
  const std::string& peer() const { return peer_; }
  Visit visit() const { return {address_, since_ns_}; }
  void abort() { abort_connection(std::move(fd_)); }

 private:
  enum class State { kHello, kWelcome, kConfirm, kChannels, kReady, kPeerReady, kDone };

  Status step_on();
  Status advance();
  Status run();
  Status receive_hello();
  Status send_welcome();
  Status receive_confirm();
  Status receive_ready();
  Status connect_channels();
  Result<void> open_channels(uint32_t count);
  void refuse(Error error);
  Status give_up(Status status, const std::string& why);

  Fabric& fabric_;
  Device& device_;
  const Nonce nonce_;
  const int traffic_class_;
  const bool host_memory_;
  const SocketAddress address_;
  std::string peer_;
  Fd fd_;
  const uint64_t since_ns_;
  Deadline deadline_;
  State state_ = State::kHello;
  Status status_ = Status::kAgain;  // of the last step()
  Error error_;
  Error refusal_;
  HandshakeMessage<Hello> hello_;
  HandshakeMessage<Welcome> welcome_;
  HandshakeMessage<Confirm> confirm_;
  HandshakeMessage<Ready> ready_, peer_ready_;
  std::unique_ptr<RegisteredBuffer> inbox_, outbox_;
  std::unique_ptr<ChannelSet> channels_;  // last: channels go before the memory they write
};

}  // namespace slime
