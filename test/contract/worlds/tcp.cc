#include <cstring>
#include <thread>

#include "base/interfaces/interfaces.h"
#include "settings/settings.h"
#include "test/contract/pattern.h"
#include "test/contract/worlds.h"
#include "transports/tcp/frames/wire.h"
#include "transports/tcp/rail.h"

namespace slime::contract {
namespace {

std::unique_ptr<Rail> open_loopback(const char* name) {
  Interface interface;
  interface.name = name;
  interface.loopback = true;
  auto address = SocketAddress::parse("127.0.0.1");
  EXPECT_TRUE(address) << address.error().what;
  if (address) interface.address = *address;
  Settings settings;
  settings.connect_timeout = 30;  // inside kHangGuard
  return tcp::TcpRail::open(interface, settings);
}

class TcpWorld final : public World {
 public:
  TcpWorld() : left_(open_loopback("lo0")), right_(open_loopback("lo1")) {}

  Rail& left() override { return *left_; }
  Rail& right() override { return *right_; }
  bool pump() override {
    std::this_thread::yield();
    return true;
  }
  WorldProperties properties() const override { return {.in_real_time = true}; }
  // Only such as lead to this host: a test may not dial strangers.
  std::vector<ChannelAddress> alien_addresses(const ChannelAddress& real) override {
    std::vector<ChannelAddress> aliens(1);  // 0.0.0.0:0 or no address at all
    auto endpoint = tcp::unpack_endpoint(real);
    EXPECT_TRUE(endpoint) << endpoint.error().what;
    if (!endpoint) return aliens;
    for (std::byte& byte : endpoint->nonce) {
      byte ^= std::byte{0x10};
      aliens.push_back(tcp::pack_endpoint(*endpoint));
      byte ^= std::byte{0x10};
    }
    endpoint->address.set_port(1);  // tcpmux: nobody listens there
    aliens.push_back(tcp::pack_endpoint(*endpoint));
    return aliens;
  }

 private:
  std::unique_ptr<Rail> left_, right_;
};

}  // namespace

std::unique_ptr<World> make_tcp_world() { return std::make_unique<TcpWorld>(); }

}  // namespace slime::contract
