// Datagrams at a worker's port: only those of the switch's shards and of the other ranks come in,
// whole and in their order, whoever else sends.
#include "collnet/udp/udp_port.h"

#include <sys/socket.h>

#include <algorithm>

#include "base/clock.h"
#include "test/fuzz/support/target.h"

namespace slime {

struct Sender {
  Fd fd;
  SocketAddress address;
};

static Sender open_sender(const char* at) {
  auto address = *SocketAddress::parse(at);
  Sender sender{Fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)), address};
  FUZZ_CHECK(::bind(sender.fd.get(), address.data(), address.size()) == 0);
  sender.address = *local_address(sender.fd);
  return sender;
}

// The switch, a rank, and a stranger; the same in all runs.
static const Sender* senders() {
  static const Sender all[] = {open_sender("127.0.0.1"), open_sender("127.0.0.2"),
                               open_sender("127.0.0.3")};
  return all;
}

class Heard final : public DatagramUser {
 public:
  void on_datagram(std::span<const std::byte> datagram, const SocketAddress& from,
                   uint64_t) override {
    all.push_back({from.to_string(), {datagram.begin(), datagram.end()}});
  }
  std::vector<std::pair<std::string, std::vector<std::byte>>> all;
};

SLIME_FUZZ_TARGET(udp_port, input) {
  const Sender* const from = senders();
  static const std::unique_ptr<UdpPort> port =
      std::move(*UdpPort::open({.peers = {senders()[0].address}, .buffer_bytes = 1 << 20}));
  port->set_switches({{from[0].address, 1}});
  port->set_ranks({from[1].address});
  Heard heard, expected;
  for (int i = 0; i < 10 && !input.empty(); ++i) {
    const Sender& sender = from[input.below(3)];
    std::vector<std::byte> bytes(input.below(4) == 0 ? input.take<uint16_t>() % 10'000 : 0);
    const auto start = input.bytes(input.below(64));
    bytes.insert(bytes.begin(), start.begin(), start.end());
    // What does not fit a packet of SAP/2 is none; buffers may be rounded up a little.
    constexpr size_t kRounded = sap::kMaxPacketBytes + 64;
    if (bytes.size() > sap::kMaxPacketBytes && bytes.size() < kRounded) bytes.resize(kRounded);
    const SocketAddress& to = port->address();
    FUZZ_CHECK(::sendto(sender.fd.get(), bytes.data(), bytes.size(), 0, to.data(), to.size()) >= 0);
    const bool comes = &sender != &from[2] && bytes.size() < kRounded;
    if (comes) expected.all.push_back({sender.address.to_string(), bytes});
  }
  const uint64_t end_ns = SteadyClock::instance().now_ns() + 60'000'000'000;
  while (port->receive(heard, 1) ||
         (heard.all.size() < expected.all.size() && SteadyClock::instance().now_ns() < end_ns)) {
  }
  FUZZ_CHECK(heard.all == expected.all);
}

}  // namespace slime
