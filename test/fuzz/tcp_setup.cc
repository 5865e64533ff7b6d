// Set-up of a tcp rail: a peer's channel address, and connections that say hello. Only a hello with
// the nonce that is expected may become a channel.
#include "test/fuzz/support/stream.h"
#include "transports/tcp/acceptor.h"

namespace slime::tcp {

static void check_endpoint(fuzz::Input& input) {
  ChannelAddress packed{};
  const auto bytes = input.bytes(packed.size());
  if (!bytes.empty()) std::memcpy(packed.data(), bytes.data(), bytes.size());
  const auto endpoint = unpack_endpoint(packed);
  if (!endpoint) return;
  const ChannelAddress again = pack_endpoint(*endpoint);
  constexpr size_t kUsed = SocketAddress::kWireBytes + sizeof(Nonce);
  FUZZ_CHECK(std::memcmp(again.data(), packed.data(), kUsed) == 0);
}

struct Visitor {
  Fd fd;
  bool knows = false;
};

static Visitor visit(const SocketAddress& listener, const Nonce& nonce, fuzz::Input& input) {
  Visitor visitor{*start_connect(listener), false};
  const linger now{.l_onoff = 1, .l_linger = 0};  // so that no port rests
  (void)setsockopt(visitor.fd.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  Error error;
  (void)finish_connect(visitor.fd, listener, &error);
  Hello hello;
  hello.flags = input.take<uint8_t>() % 4;
  hello.nonce = nonce;
  const uint32_t kind = input.below(4);
  visitor.knows = kind == 0;
  if (kind == 1) hello.nonce[input.below(16)] ^= static_cast<std::byte>(input.below(255) + 1);
  if (kind == 2) hello.magic ^= input.take<uint32_t>() | 1;
  auto message = fuzz::bytes_of(hello);
  if (kind == 3) message = input.bytes(input.below(64));
  size_t done = 0;
  (void)send_message(visitor.fd, message, &done, &error);
  return visitor;
}

SLIME_FUZZ_TARGET(tcp_setup, input) {
  check_endpoint(input);
  fuzz::ManualClock clock;
  Acceptor acceptor("fuzz", *SocketAddress::parse("127.0.0.1"), Settings(), clock);
  Nonce nonce;
  nonce.fill(std::byte{0x5a});
  const auto address = acceptor.expect(nonce);
  FUZZ_CHECK(address);
  std::vector<Visitor> visitors;
  bool anybody_knows = false;
  Arrival arrival;
  Error error;
  for (int i = 0; i < 8 && !input.empty(); ++i) {
    visitors.push_back(visit(*address, nonce, input));
    anybody_knows |= visitors.back().knows;
    if (input.below(8) == 7) clock.pass(seconds_to_ns(Settings().handshake_timeout) + 1);
    const Status status = acceptor.take(nonce, &arrival, &error);
    FUZZ_CHECK(status == Status::kOk || status == Status::kAgain);
    if (status == Status::kAgain) continue;
    FUZZ_CHECK(anybody_knows && arrival.fd && same_nonce(arrival.hello.nonce, nonce));
    break;
  }
  FUZZ_CHECK(acceptor.strangers() <= visitors.size());
}

}  // namespace slime::tcp
