#include "engine/setup/incoming_handshake.h"

#include <algorithm>
#include <cstdio>

#include "engine/receiver/recv_comm.h"

namespace slime {

IncomingHandshake::IncomingHandshake(Fabric& fabric, Device& device, const Nonce& nonce,
                                     Accepted accepted, const CommOptions& options)
    : fabric_(fabric),
      device_(device),
      nonce_(nonce),
      traffic_class_(options.chosen_class(fabric.settings())),
      host_memory_(options.host_memory),
      address_(accepted.peer),
      peer_(accepted.peer.to_string()),
      fd_(std::move(accepted.fd)),
      since_ns_(fabric.clock().now_ns()),
      deadline_(fabric.clock(), seconds_to_ns(fabric.settings().handshake_timeout)) {}

Status IncomingHandshake::step() {
  if (status_ == Status::kAgain) status_ = step_on();
  return status_;
}

Status IncomingHandshake::step_on() {
  const Deadline::Look look(deadline_);
  Status status = Status::kOk;
  while (status == Status::kOk && state_ != State::kDone) status = advance();
  if (status == Status::kAgain && look.expired()) {
    status = give_up(Status::kTimeout, proven() ? "the handshake was not finished in time"
                                                : "it connected and did not say hello in time");
  }
  if (status != Status::kOk && status != Status::kAgain) {
    error_ = make_error(status, error_.code, "accept of peer %s on device %s: %s", peer_.c_str(),
                        device_.properties().name.c_str(), error_.what.c_str());
  }
  return status;
}

Status IncomingHandshake::advance() {
  const Status status = run();
  if (status == Status::kOk) state_ = static_cast<State>(static_cast<int>(state_) + 1);
  return status;
}

Status IncomingHandshake::run() {
  switch (state_) {
    case State::kHello:
      return receive_hello();
    case State::kWelcome:
      return send_welcome();
    case State::kConfirm:
      return receive_confirm();
    case State::kChannels:
      return connect_channels();
    case State::kReady:
      return ready_.send(fd_, &error_);
    case State::kPeerReady:
      return receive_ready();
    case State::kDone:
      return Status::kOk;
  }
  return Status::kInternal;
}

Status IncomingHandshake::receive_hello() {
  if (const Status status = hello_.receive(fd_, &error_); status != Status::kOk) return status;
  const Hello& hello = hello_.value;
  if (!valid(hello.preamble, MessageType::kHello)) {
    return give_up(Status::kRemote, describe_mismatch(hello.preamble, MessageType::kHello));
  }
  if (!same_nonce(hello.nonce, nonce_)) {
    return give_up(Status::kRemote, "it has not seen this listener's handle (wrong nonce)");
  }
  peer_ = peer_name(hello.name, address_);
  deadline_.restart(seconds_to_ns(fabric_.settings().connect_timeout));
  welcome_.value.name = own_name();
  const uint32_t rails = hello.rails.count;
  if (rails < 1 || rails > kMaxRails) {
    refuse(
        make_error(Status::kRemote, 0, "%u rails offered, 1 to %u are possible", rails, kMaxRails));
    return Status::kOk;
  }
  welcome_.value.rails = describe_rails(device_.rails());
  // The receiver's processor copies eager messages to their place; it cannot write device memory.
  const bool may_copy = host_memory_ || !device_.properties().takes_device_memory();
  const auto own_eager_max = may_copy ? static_cast<uint32_t>(fabric_.settings().eager_max) : 0;
  welcome_.value.eager_max = std::min(hello.eager_max, own_eager_max);
  auto opened = open_channels(std::max(rails, welcome_.value.rails.count));
  if (!opened) refuse(opened.error());
  return Status::kOk;
}

Result<void> IncomingHandshake::open_channels(uint32_t count) {
  auto inbox = RegisteredBuffer::make(device_, eager_inbox_bytes(welcome_.value.eager_max, count));
  if (!inbox) return fail(inbox.error());
  inbox_ = std::make_unique<RegisteredBuffer>(std::move(*inbox));
  auto outbox = RegisteredBuffer::make(device_, cts_inbox_bytes(count));
  if (!outbox) return fail(outbox.error());
  outbox_ = std::make_unique<RegisteredBuffer>(std::move(*outbox));
  channels_ = std::make_unique<ChannelSet>(device_, count, false, traffic_class_);
  if (auto fit = channels_->pair_with(hello_.value.rails, peer_); !fit) return fit;
  if (auto opened = channels_->open(*inbox_, &welcome_.value.side); !opened) return opened;
  welcome_.value.channels = count;
  return {};
}

// The peer is told why, so that both logs have the reason.
void IncomingHandshake::refuse(Error error) {
  std::snprintf(welcome_.value.reason.data(), welcome_.value.reason.size(), "%s",
                error.what.c_str());
  welcome_.value.channels = 0;
  refusal_ = std::move(error);
}

Status IncomingHandshake::send_welcome() {
  const Status status = welcome_.send(fd_, &error_);
  if (status != Status::kOk || welcome_.value.channels > 0) return status;
  error_ = refusal_;
  return error_.status;
}

Status IncomingHandshake::give_up(Status status, const std::string& why) {
  error_ = make_error(status, 0, "%s", why.c_str());
  return status;
}

Status IncomingHandshake::receive_confirm() {
  if (const Status status = confirm_.receive(fd_, &error_); status != Status::kOk) return status;
  if (!valid(confirm_.value.preamble, MessageType::kConfirm)) {
    return give_up(Status::kRemote,
                   describe_mismatch(confirm_.value.preamble, MessageType::kConfirm));
  }
  return Status::kOk;
}

Status IncomingHandshake::connect_channels() {
  const Status status = channels_->connect(confirm_.value.side);
  if (status == Status::kOk || status == Status::kAgain) return status;
  return give_up(status, channels_->failure());
}

Status IncomingHandshake::receive_ready() {
  const Status status = peer_ready_.receive(fd_, &error_);
  if (status != Status::kOk) return status;
  if (!valid(peer_ready_.value.preamble, MessageType::kReady)) {
    return give_up(Status::kRemote,
                   describe_mismatch(peer_ready_.value.preamble, MessageType::kReady));
  }
  return Status::kOk;
}

std::unique_ptr<RecvComm> IncomingHandshake::take() {
  LinkParts parts =
      channels_->take(confirm_.value.side, welcome_.value.eager_max, std::move(peer_));
  parts.host_memory = host_memory_;
  return std::make_unique<RecvCommImpl>(fabric_, device_, std::move(parts), std::move(*inbox_),
                                        std::move(*outbox_));
}

}  // namespace slime
