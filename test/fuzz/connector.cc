// The connecting end of the handshake: any handle, and any answer of whoever listens there.
#include "link/setup/handshake.h"
#include "message/comm.h"
#include "message/message_owner.h"
#include "test/fuzz/support/fuzz_rail.h"
#include "test/fuzz/support/stream.h"

namespace slime {

// One listener for all runs; connections are reset, so that no port rests.
static const Fd& listener() {
  static const Fd fd = *listen_on(*SocketAddress::parse("127.0.0.1"));
  return fd;
}

static void hang_up(Accepted& accepted) {
  const linger now{.l_onoff = 1, .l_linger = 0};
  (void)setsockopt(accepted.fd.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  accepted.fd.reset();
}

// The fuzzer's handle, but never another address than ours.
static Handle handle_of(fuzz::Input& input) {
  Handle handle{};
  AddressFields fields;
  fields.address = local_address(listener())->pack();
  std::memcpy(handle.data(), &fields, sizeof fields);
  const uint32_t damage = input.below(64);
  for (uint32_t i = 0; damage >= 48 && i < damage - 47; ++i) {
    const uint32_t at = input.below(sizeof fields);
    const bool of_address =
        at >= offsetof(AddressFields, address) + 2 && at < offsetof(AddressFields, address) + 8;
    if (!of_address) handle[at] ^= static_cast<std::byte>(input.take<uint8_t>());
  }
  return handle;
}

static std::vector<std::byte> welcome_of(fuzz::Input& input, const Device& device) {
  Welcome welcome;
  welcome.rails.all.fill(describe_rails(device.rails()).all[0]);
  welcome.rails.count = input.below(kMaxRails + 2);
  welcome.channels = input.below(4) > 0 ? std::max(welcome.rails.count, 2u) : input.below(40);
  const auto description =
      input.bytes(input.below(4) > 0 ? 0 : input.below(sizeof(RailDescription)));
  if (!description.empty())
    std::memcpy(&welcome.rails.all[1], description.data(), description.size());
  welcome.words = MessageWords{.eager_max = input.take<uint32_t>() % 8192}.pack();
  const auto reason = input.bytes(input.below(256));
  if (!reason.empty()) std::memcpy(welcome.reason.data(), reason.data(), reason.size());
  const auto side = input.bytes(input.below(256));
  if (!side.empty()) std::memcpy(&welcome.side, side.data(), side.size());
  for (size_t i = 0; i < kMaxRails; ++i) {
    const auto rails = std::clamp<size_t>(welcome.rails.count, 1, kMaxRails);
    welcome.pairs[i] = {static_cast<uint8_t>(i % 2), static_cast<uint8_t>(i % rails)};
  }
  const auto pairs = input.bytes(input.below(8) > 0 ? 0 : input.below(sizeof welcome.pairs));
  if (!pairs.empty()) std::memcpy(&welcome.pairs, pairs.data(), pairs.size());
  const auto bytes = fuzz::bytes_of(welcome);
  return {bytes.begin(), bytes.end()};
}

SLIME_FUZZ_TARGET(connector, input) {
  fuzz::ManualClock clock;
  const auto devices = fuzz::devices_of(2, clock);
  auto connector = Connector::open(*devices, 0, handle_of(input));
  if (!connector) return;
  Error error;
  Accepted accepted;
  std::vector<std::byte> script;
  if (input.below(4) > 0) script = welcome_of(input, *devices->device(0));
  if (input.below(2)) {
    Ready message;
    message.connected = input.below(4) > 0 ? ~uint32_t{0} : input.take<uint32_t>();
    const auto ready = fuzz::bytes_of(message);
    script.insert(script.end(), ready.begin(), ready.end());
  }
  const auto rest = input.rest();
  script.insert(script.end(), rest.begin(), rest.end());
  for (int i = 0; i < 50; ++i) {
    auto comm = (*connector)->step();
    if (!comm) {
      for (const char c : comm.error().what) FUZZ_CHECK(static_cast<unsigned char>(c) >= 0x20);
      break;
    }
    if (*comm) {
      (void)(*comm)->progress();
      break;
    }
    if (!accepted.fd && accept_one(listener(), &accepted, &error) == Status::kOk) {
      size_t done = 0;
      (void)send_message(accepted.fd, script, &done, &error);
    }
  }
  while (accept_one(listener(), &accepted, &error) == Status::kOk) hang_up(accepted);
  if (accepted.fd) hang_up(accepted);
}

}  // namespace slime
