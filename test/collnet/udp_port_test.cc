// A worker's socket against plain ones, over both versions of IP.
#include "collnet/udp/udp_port.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <string>

#include "test/support/own_sockets.h"

namespace slime {
namespace {

constexpr int kPatienceMs = 60'000;

// A socket bound to `host`, without an owner in this project.
class PlainSocket {
 public:
  explicit PlainSocket(const std::string& host) {
    SocketAddress any = SocketAddress::parse(host).value();
    any.set_port(0);
    fd_ = Fd(::socket(any.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
    well_ = ::bind(fd_.get(), any.data(), any.size()) == 0;
  }
  bool well() const { return well_; }
  SocketAddress address() const { return local_address(fd_).value(); }
  void send(const std::string& text, const SocketAddress& to) {
    EXPECT_EQ(::sendto(fd_.get(), text.data(), text.size(), 0, to.data(), to.size()),
              static_cast<ssize_t>(text.size()));
  }
  std::string receive() {
    pollfd waited{fd_.get(), POLLIN, 0};
    if (::poll(&waited, 1, kPatienceMs) != 1) return "nothing came";
    std::string text(64, ' ');
    const ssize_t got = ::recv(fd_.get(), text.data(), text.size(), 0);
    text.resize(got < 0 ? 0 : static_cast<size_t>(got));
    return text;
  }

 private:
  Fd fd_;
  bool well_ = false;
};

struct Keeper final : DatagramUser {
  void on_datagram(std::span<const std::byte> datagram, const SocketAddress&, uint64_t) override {
    texts.emplace_back(reinterpret_cast<const char*>(datagram.data()), datagram.size());
  }
  std::vector<std::string> texts;
};

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

class UdpPortTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!switch_.well()) GTEST_SKIP() << "no " << GetParam() << " on this machine";
  }
  // To the switch, one of them after each other of its own size, and back.
  void exchange(UdpPort* port) {
    port->set_switches({{PlainSocket(GetParam()).address(), 1}, {switch_.address(), 1}});
    const std::string sent[] = {"one", "two", "six", "a longer one"};
    for (const std::string& text : sent) port->send(switch_.address(), bytes_of(text));
    port->flush();
    for (const std::string& text : sent) EXPECT_EQ(switch_.receive(), text);
    PlainSocket stranger(GetParam());
    stranger.send("from a stranger", port->address());
    switch_.send("result", port->address());
    Keeper keeper;
    const auto waits = [&] { return keeper.texts.empty() || port->counters().strangers == 0; };
    for (int i = 0; i < kPatienceMs && waits(); ++i) {
      if (!port->receive(keeper, 1)) ::poll(nullptr, 0, 1);
    }
    EXPECT_EQ(keeper.texts, std::vector<std::string>{"result"});
    EXPECT_EQ(port->counters().strangers, 1u);
    EXPECT_EQ(port->counters().send_drops, 0u);
  }

  PlainSocket switch_{GetParam()};
};

TEST_P(UdpPortTest, SendsAndReceives) {
  const auto port = UdpPort::open({.peers = {switch_.address()}});
  ASSERT_TRUE(port) << port.error().what;
  EXPECT_EQ((*port)->address().is_ipv6(), switch_.address().is_ipv6());
  EXPECT_GT((*port)->max_packet_bytes(), 1000u);
  exchange(port->get());
}

TEST_P(UdpPortTest, MarksItsPackets) {
  const auto port = UdpPort::open({.peers = {switch_.address()}, .traffic_class = 0x68});
  ASSERT_TRUE(port) << port.error().what;
  EXPECT_EQ(test::count_marked(0x68, SOCK_DGRAM), 1u);
  exchange(port->get());
}

// As where the kernel lets nobody bind to an interface: the routes decide, and lead there too.
TEST_P(UdpPortTest, DoesWithoutBeingBoundToTheInterface) {
  SocketAddress own = SocketAddress::parse(GetParam()).value();
  own.set_port(0);
  const auto port =
      UdpPort::open({.peers = {switch_.address()}, .interface = "nosuchinterface", .address = own});
  ASSERT_TRUE(port) << port.error().what;
  exchange(port->get());
}

INSTANTIATE_TEST_SUITE_P(Hosts, UdpPortTest, testing::Values("127.0.0.1", "::1"),
                         [](const auto& info) { return info.index == 0 ? "IPv4" : "IPv6"; });

}  // namespace
}  // namespace slime
