#include "engine/setup/incoming_handshake.h"

#include <algorithm>
#include <cstdio>

#include "engine/receiver/recv_comm.h"

namespace slime {

std::optional<std::string> judge_hello(const Hello& hello, const Nonce& nonce) {
  if (!valid(hello.preamble, MessageType::kHello)) {
    return describe_mismatch(hello.preamble, MessageType::kHello);
  }
  if (!same_nonce(hello.nonce, nonce)) {
    return "it has not seen this listener's handle (wrong nonce)";
  }
  return std::nullopt;
}

// If the welcome cannot be prepared, it is sent as a refusal with the reason, so that both logs
// have it.
IncomingHandshake::IncomingHandshake(Fabric& fabric, Device& device, const Hello& hello, Fd fd,
                                     const SocketAddress& from, const CommOptions& options)
    : HandshakeEnd(fabric, device, false, options, "accept of", peer_name(hello.name, from)),
      from_(from),
      host_memory_(options.host_memory) {
  fd_ = std::move(fd);
  welcome_.value.name = own_name();
  auto prepared = prepare_welcome(hello);
  if (prepared) return;
  std::snprintf(welcome_.value.reason.data(), welcome_.value.reason.size(), "%s",
                prepared.error().what.c_str());
  welcome_.value.channels = 0;
  refusal_ = std::move(prepared.error());
}

Result<void> IncomingHandshake::prepare_welcome(const Hello& hello) {
  Welcome& welcome = welcome_.value;
  const uint32_t rails = hello.rails.count;
  if (rails < 1 || rails > kMaxRails) {
    return fail(
        make_error(Status::kRemote, 0, "%u rails offered, 1 to %u are possible", rails, kMaxRails));
  }
  welcome.rails = describe_rails(device_.rails());
  // The receiver's CPU copies eager messages to their target, and cannot write device memory.
  const bool may_copy = host_memory_ || !device_.properties().takes_device_memory();
  const auto own_eager_max = may_copy ? static_cast<uint32_t>(fabric_.settings().eager_max) : 0;
  welcome.eager_max = std::min(hello.eager_max, own_eager_max);
  const auto pairs = pair_rails(hello.rails, welcome.rails);
  std::ranges::copy(pairs, welcome.pairs.begin());
  welcome.channels = static_cast<uint32_t>(pairs.size());
  return open_channels(hello.rails);
}

Status IncomingHandshake::run(Stage stage) {
  switch (stage) {
    case Stage::kWelcome:
      return send_welcome();
    case Stage::kConfirm:
      return receive(&confirm_);
    default:
      return run_common(stage);
  }
}

// A refusal fails this end only after the peer has got it.
Status IncomingHandshake::send_welcome() {
  const Status status = welcome_.send(fd_, &error_);
  if (status != Status::kOk) return status;
  if (refusal_.status != Status::kOk) return fail_with(refusal_);
  allow(fabric_.settings().connect_timeout);  // the peer can confirm only from now on
  return status;
}

std::unique_ptr<RecvComm> IncomingHandshake::take_comm() {
  LinkParts parts = take();
  parts.host_memory = host_memory_;
  return std::make_unique<RecvCommImpl>(fabric_, device_, std::move(parts), std::move(*inbox_),
                                        std::move(*outbox_));
}

}  // namespace slime
