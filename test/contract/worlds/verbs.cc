// Two ports of RDMA NICs, without hardware or real.

#include <thread>

#include "settings/settings.h"
#include "test/contract/worlds.h"
#include "test/support/test_buffer.h"
#include "test/support/verbs/count_closing.h"
#include "test/support/verbs/two_ports.h"

namespace slime::contract {
namespace {

Settings settings_of_rails() {
  Settings settings;
  settings.connect_timeout = 5;
  settings.peer_timeout = 0.04;
  settings.ib_timeout = 8;
  settings.ib_retry_count = 2;
  if (test::TwoPorts::are_real()) {
    settings.peer_timeout = 0.2;
    settings.ib_timeout = 16;
    settings.ib_retry_count = 3;
  }
  return settings;
}

class VerbsWorld final : public World {
 public:
  ~VerbsWorld() override {
    if (!ports_.fake) return;
    EXPECT_TRUE(test::eventually([this] {  // closed channels say so to their peers
      while (ports_.step()) continue;
      return test::count_closing(left()) + test::count_closing(right()) == 0;
    }));
  }
  Rail& left() override { return *ports_.rails[0]; }
  Rail& right() override { return *ports_.rails[1]; }
  bool pump() override {
    const bool moved = ports_.step();
    at_rest_ = ports_.fake && !moved;
    if (!moved) std::this_thread::yield();
    return true;  // NICs give up and channels ask their peers as time passes
  }
  bool is_at_rest() const override { return at_rest_; }
  WorldProperties properties() const override {
    return {.in_real_time = true, .many_channels = 1000, .flushed_kind = MemoryKind::kHost};
  }
  uint64_t violations() const override {
    return ports_.fake ? ports_.fake->violations().size() : 0;
  }
  std::optional<test::NicCalls> nic_calls(Rail& rail) const override {
    return test::nic_calls(static_cast<verbs::VerbsRail&>(rail).nic().context());
  }
  std::vector<ChannelAddress> alien_addresses(const ChannelAddress& real) override {
    std::vector<ChannelAddress> aliens(1);
    aliens.push_back(real);
    aliens.back()[45] ^= std::byte{0x10};  // of its nonce
    return aliens;
  }

 private:
  test::TwoPorts ports_{settings_of_rails()};
  bool at_rest_ = false;
};

}  // namespace

std::unique_ptr<World> make_verbs_world() { return std::make_unique<VerbsWorld>(); }

}  // namespace slime::contract
