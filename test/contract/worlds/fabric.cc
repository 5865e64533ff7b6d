// Two rails of a provider of libfabric: of the one that is installed, or of one without hardware.
#include <sys/statvfs.h>

#include <cstdio>
#include <optional>
#include <random>
#include <thread>

#include "base/net/socket.h"
#include "settings/settings.h"
#include "test/contract/worlds.h"
#include "test/support/fabric/fake_fabric.h"
#include "transports/fabric/discovery.h"
#include "transports/tcp/rail.h"

namespace slime::contract {
namespace {

Settings settings_of_rails(const std::string& provider) {
  Settings settings;
  settings.ifname = "lo";
  settings.connect_timeout = 30;  // inside kHangGuard
  settings.fabric_provider = provider;
  return settings;
}

using Rails = std::vector<std::unique_ptr<Rail>>;

std::shared_ptr<Rail> open_side_rail(const Settings& settings) {
  auto rails = tcp::open_tcp_rails(settings, nullptr);
  EXPECT_TRUE(rails && !rails->empty());
  return rails && !rails->empty() ? std::move(rails->front()) : nullptr;
}

// Its NIC is often busy, and its completion queues are short.
test::FakeFabricOptions options_of_fake() {
  test::FakeFabricOptions options;
  options.seed = std::random_device{}();
  options.tx_places = 100;
  options.rx_size = 400;
  options.busy_percent = 10;
  options.device_memory = true;
  options.dma_bufs = true;
  return options;
}

// Its endpoints are files there; a process that writes beyond what is free gets a signal.
bool has_room_for_shm() {
  struct statvfs room = {};
  return ::statvfs("/dev/shm", &room) == 0 && room.f_bavail * room.f_frsize >= uint64_t{512} << 20;
}

class FabricWorld final : public World {
 public:
  FabricWorld(const std::string& provider, std::string* absent)
      : settings_(settings_of_rails(provider)) {
    const auto symbols = fabric::load_symbols();
    if (!symbols) {
      *absent = symbols.error().what;
      return;
    }
    if (provider == "shm" && !has_room_for_shm()) {
      *absent = "libfabric: shm needs 512 MiB in /dev/shm for these tests";
      return;
    }
    open(**symbols, "/sys", absent);
  }
  explicit FabricWorld(const test::FakeFabricOptions& options)
      : settings_(settings_of_rails("efa")) {
    std::string absent;
    nics_.emplace(options);
    open(nics_->symbols(), nics_->sysfs_root(), &absent);
    EXPECT_EQ(absent, "");
  }
  ~FabricWorld() override {
    if (!nics_ || !testing::Test::HasFailure()) return;
    std::fprintf(stderr, "the seed of the NICs was %llu\n",
                 static_cast<unsigned long long>(nics_->options().seed));
    for (const std::string& what : nics_->violations()) std::fprintf(stderr, "%s\n", what.c_str());
  }
  bool usable() const { return rails_.size() == 2; }
  Rail& left() override { return *rails_[0]; }
  Rail& right() override { return *rails_[1]; }
  bool pump() override {
    if (nics_ && nics_->step()) return true;
    std::this_thread::yield();
    return true;
  }
  WorldProperties properties() const override {
    return {.in_real_time = true, .by_offset = by_offset_, .sent_by_polls_of_both = both_poll_};
  }
  uint64_t violations() const override { return nics_ ? nics_->violations().size() : 0; }
  std::vector<ChannelAddress> alien_addresses(const ChannelAddress& real) override {
    std::vector<ChannelAddress> aliens(1);
    aliens.push_back(real);
    aliens.back()[SocketAddress::kWireBytes] ^= std::byte{0x10};  // of the side connection's nonce
    return aliens;
  }

 private:
  void open(const fabric::Symbols& symbols, const std::string& sysfs_root, std::string* absent) {
    std::vector<std::string> notes;
    for (const char* const end : {"left", "right"}) {
      const auto with =
          fabric::Opening::prepare(symbols, open_side_rail(settings_), settings_, sysfs_root);
      EXPECT_TRUE(with) << with.error().what;
      if (!with) return;
      std::vector<fabric::Nic> nics = fabric::find_nics(*with, &notes);
      if (!nics.empty()) nics.resize(1);
      for (fabric::Nic& nic : nics) {
        nic.caps.name += std::string("/") + end;  // two rails of one NIC
        both_poll_ = nic.traits.delivery_complete && !nic.traits.in_hardware;
        by_offset_ = (nic.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) == 0;
      }
      for (auto& rail : fabric::open_nics(*with, std::move(nics), &notes))
        rails_.push_back(std::move(rail));
    }
    if (rails_.size() < 2) *absent = notes.empty() ? "no NIC" : notes.front();
  }

  const Settings settings_;
  std::optional<test::FakeFabric> nics_;  // unless the library is the one that is installed
  Rails rails_;
  bool by_offset_ = false, both_poll_ = false;
};

}  // namespace

std::unique_ptr<World> make_fabric_world(const std::string& provider, std::string* absent) {
  auto world = std::make_unique<FabricWorld>(provider, absent);
  return world->usable() ? std::move(world) : nullptr;
}

std::unique_ptr<World> make_efa_world() { return std::make_unique<FabricWorld>(options_of_fake()); }

}  // namespace slime::contract
