#include "link/setup/incoming_handshake.h"

#include <algorithm>
#include <cstdio>

namespace slime {

std::optional<std::string> judge_hello(const Hello& hello, const Nonce& nonce) {
  if (!valid(hello.preamble, MessageType::kHello) && !valid(hello.preamble, MessageType::kResume)) {
    return describe_mismatch(hello.preamble, MessageType::kHello);
  }
  if (!same_nonce(hello.nonce, nonce)) {
    return "it has not seen this listener's handle (wrong nonce)";
  }
  return std::nullopt;
}

// If the welcome cannot be prepared, it is sent as a refusal with the reason, so that both logs
// have it.
IncomingHandshake::IncomingHandshake(Devices& devices, Device& device, const Hello& hello, Fd fd,
                                     const SocketAddress& from, const LinkOwner& owner,
                                     int traffic_class)
    : HandshakeEnd(devices, device, false, owner, traffic_class, "accept of",
                   peer_name(hello.name, from)),
      from_(from) {
  fd_ = std::move(fd);
  id_ = hello.link;
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
  auto answer = owner_.answer(hello.words);
  if (!answer) return fail(std::move(answer.error()));
  welcome.words = *answer;
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
  allow(devices_.settings().connect_timeout);  // the peer can confirm only from now on
  return status;
}

}  // namespace slime
