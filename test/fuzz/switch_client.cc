// The worker's end of the control channel, with a switch that answers what it likes.

#include "switch/protocol/client.h"
#include "test/fuzz/support/stream.h"

namespace slime {

static const Fd& listener() {
  static const Fd fd = *listen_on(*SocketAddress::parse("127.0.0.1"));
  return fd;
}

static void hang_up(Accepted& accepted) {
  const linger now{.l_onoff = 1, .l_linger = 0};  // so that no port rests
  (void)setsockopt(accepted.fd.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  accepted.fd.reset();
}

static control::Message request_of(uint32_t kind) {
  if (kind == 0) return control::Report{true};
  if (kind == 1) return control::Heartbeat{};
  if (kind == 2) return control::Drain{true};
  control::CreateJob job{.tenant = "t",
                         .formats_wanted = 1,
                         .formats_least = 1,
                         .children = {*local_address(listener())}};
  job.slots_wanted = job.lanes_wanted = 1;
  return job;
}

// A challenge, then answers of any type with the fuzzer's payloads.
static std::vector<std::byte> script_of(fuzz::Input& input) {
  std::vector<std::byte> script;
  if (input.below(8) > 0) script = control::encode(control::Challenge{}, 0);
  while (!input.empty()) {
    const auto type = static_cast<std::byte>(input.below(15));
    const uint32_t sequence = input.below(8) == 0 ? input.below(4) : 1;
    auto frame =
        control::encode(control::Text{fuzz::text_of(input.bytes(input.below(120)))}, sequence);
    frame[5] = type;
    script.insert(script.end(), frame.begin(), frame.end());
  }
  return script;
}

SLIME_FUZZ_TARGET(switch_client, input) {
  fuzz::ManualClock clock;
  const auto address = *local_address(listener());
  auto client = SwitchClient::start(address, SecretKey(), 1'000'000'000, clock);
  FUZZ_CHECK(client);
  Error error;
  const auto request = request_of(input.below(4));
  FUZZ_CHECK((*client)->post(request, 1'000'000'000, &error) == Status::kOk);
  const auto script = script_of(input);
  Accepted accepted;
  Status status = Status::kAgain;
  for (int i = 0; i < 50 && status == Status::kAgain; ++i) {
    status = (*client)->progress(&error);
    if (!accepted.fd && accept_one(listener(), &accepted, &error) == Status::kOk) {
      size_t done = 0;
      (void)send_message(accepted.fd, script, &done, &error);
    }
  }
  if (status == Status::kAgain) {
    clock.pass(10'000'000'000);
    status = (*client)->progress(&error);
    FUZZ_CHECK(status != Status::kAgain);
  }
  if (status == Status::kOk) {
    const auto type = control::type_of((*client)->answer());
    FUZZ_CHECK(type >= control::Type::kJobGrant && type <= control::Type::kRefused);
  } else {
    FUZZ_CHECK(!error.what.empty());
  }
  while (accept_one(listener(), &accepted, &error) == Status::kOk) hang_up(accepted);
  if (accepted.fd) hang_up(accepted);
}

}  // namespace slime
