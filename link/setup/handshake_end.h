// The common part of both ends of the handshake (handshake.h): its stages.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "link/setup/channel_set.h"

namespace slime {

// One end of a handshake: the connector, or the listener's end of one connection.
//
// States: the stages, one after the other. advance() goes on until a stage has to wait. Only the
// connector goes back, to kConnect. An end that is done or has failed stays so.
// Invariants: each limit begins when this end starts to wait for something else of the peer
// (allow()): stages that follow without such a wait share one. The channels and the memory that
// they write exist from kConfirm on. Thread: the one that calls advance().
class HandshakeEnd {
 public:
  const Error& error() const { return error_; }
  uint64_t waits_since_ns() const { return waits_since_ns_; }  // when the present stage began

 protected:
  enum class Stage : uint8_t {
    kConnect,  // the first two are the connector's; a listener's end begins with kWelcome
    kHello,
    kWelcome,
    kConfirm,
    kChannels,
    kReady,
    kPeerReady,
    kDone
  };

  // `what` begins the errors: "connect to" or "accept of".
  HandshakeEnd(Devices& devices, Device& device, bool active, const LinkOwner& owner,
               int traffic_class, const char* what, std::string peer);
  ~HandshakeEnd() = default;
  HandshakeEnd(HandshakeEnd&&) = default;

  // kAgain: call again. kOk: take() the parts. Anything else: error() says why.
  Status advance();
  std::unique_ptr<LinkParts> take();

  // Registers memory and opens as many channels as the welcome names.
  Result<void> open_channels(const RailDescriptions& peer_rails);
  const Side& peer_side() const { return active_ ? welcome_.value.side : confirm_.value.side; }
  // Receives a message. kOk: it is complete and has the right type.
  template <typename T>
  Status receive(HandshakeMessage<T>* message) {
    const Status status = message->receive(fd_, &error_);
    return status == Status::kOk ? check(message->value.preamble, T().preamble) : status;
  }
  Status run_common(Stage stage);  // kChannels and the later stages
  Status fail_with(Error error) {
    error_ = std::move(error);
    return error_.status;
  }
  Status begin_channels();
  std::string channel_failures() const;
  void allow(double seconds) { deadline_.restart(seconds_to_ns(seconds)); }  // from now on

  Devices& devices_;
  Device& device_;
  const LinkOwner& owner_;
  Stage stage_;
  std::string peer_;
  LinkId id_ = {};
  Fd fd_;
  Error error_;
  HandshakeMessage<Welcome> welcome_;
  HandshakeMessage<Confirm> confirm_;
  std::unique_ptr<RegisteredBuffer> inbox_, outbox_;
  std::unique_ptr<ChannelSet> channels_;  // last of these: channels end before the memory they use

 private:
  virtual Status run(Stage stage) = 0;       // kOk: the stage is complete
  virtual std::string too_late() const = 0;  // the error when the deadline has passed
  Status check(const Preamble& got, const Preamble& expected);
  Status connect_channels();
  Status agree_on_channels();

  const bool active_;
  const int traffic_class_;
  const char* const what_;
  Deadline deadline_;
  uint64_t waits_since_ns_;
  Status status_ = Status::kAgain;  // of the last advance()
  HandshakeMessage<Ready> ready_, peer_ready_;
};

}  // namespace slime
