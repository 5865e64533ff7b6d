// Two ports of RDMA NICs without hardware, or of the real ones that SLIME_VERBS_RAILS names
// ("rxe0,rxe1").

#include <cstdlib>
#include <optional>
#include <thread>

#include "settings/settings.h"
#include "test/contract/worlds.h"
#include "test/support/test_buffer.h"
#include "test/support/verbs/count_closing.h"
#include "test/support/verbs/fake_verbs.h"
#include "transports/verbs/rail.h"

namespace slime::contract {
namespace {

const char* real_rails() { return std::getenv("SLIME_VERBS_RAILS"); }

Settings settings_of_rails() {
  Settings settings;
  settings.ifname = "lo";
  settings.connect_timeout = 5;
  settings.peer_timeout = 0.04;
  settings.ib_timeout = 8;
  settings.ib_retry_count = 2;
  if (const char* const rails = real_rails()) {
    settings.hca = "=" + std::string(rails);
    settings.ifname = "";
    settings.peer_timeout = 0.2;
    settings.ib_timeout = 16;
    settings.ib_retry_count = 3;
  }
  return settings;
}

class VerbsWorld final : public World {
 public:
  VerbsWorld() {
    std::vector<std::string> notes;
    auto rails = open(&notes);
    if (!rails) {
      ADD_FAILURE() << rails.error().what;
    } else {
      rails_ = std::move(*rails);
    }
    if (rails_.size() >= 2) return;
    for (const std::string& note : notes) ADD_FAILURE() << note;
    std::abort();
  }
  ~VerbsWorld() override {
    if (!nics_ || rails_.size() < 2) return;
    EXPECT_TRUE(test::eventually([this] {  // closed channels say so to their peers
      while (nics_->step()) continue;
      return test::count_closing(left()) + test::count_closing(right()) == 0;
    }));
  }
  Rail& left() override { return *rails_[0]; }
  Rail& right() override { return *rails_[1]; }
  bool pump() override {
    at_rest_ = nics_ && !nics_->step();
    if (at_rest_ || !nics_) std::this_thread::yield();
    return true;  // NICs give up and channels ask their peers as time passes
  }
  bool is_at_rest() const override { return at_rest_; }
  WorldProperties properties() const override {
    return {.in_real_time = true, .flushed_kind = MemoryKind::kHost};
  }
  uint64_t violations() const override { return nics_ ? nics_->violations().size() : 0; }
  std::vector<ChannelAddress> alien_addresses(const ChannelAddress& real) override {
    std::vector<ChannelAddress> aliens(1);
    aliens.push_back(real);
    aliens.back()[45] ^= std::byte{0x10};  // of its nonce
    return aliens;
  }

 private:
  Result<std::vector<std::unique_ptr<Rail>>> open(std::vector<std::string>* notes) {
    const Settings settings = settings_of_rails();
    if (real_rails() != nullptr) return verbs::open_verbs_rails(settings, notes);
    nics_.emplace();
    return verbs::open_verbs_rails(nics_->symbols(), nics_->sysfs_root(), settings, notes);
  }

  std::optional<test::FakeVerbs> nics_;  // unless there are real ones
  bool at_rest_ = false;
  std::vector<std::unique_ptr<Rail>> rails_;
};

}  // namespace

std::unique_ptr<World> make_verbs_world() { return std::make_unique<VerbsWorld>(); }

}  // namespace slime::contract
