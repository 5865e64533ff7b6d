// From init to finalize, with settings good and bad.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "test/boundary/support/net.h"
#include "test/boundary/support/two_nics.h"

namespace slime::boundary {
namespace {

// A plugin that no other test has used.
struct Fresh {
  const Plugin fresh_;
};

class Lifecycle : private Fresh, public NetTest {
 protected:
  Lifecycle() : NetTest(fresh_, Api::kNewest) {}

  int device_count() {
    int count = -1;
    EXPECT_EQ(net_.devices(&count), nccl::kSuccess);
    return count;
  }
};

TEST_F(Lifecycle, SaysInOneLineWhatThereIs) {
  set("NCCL_SLIME_RAILS_PER_IF", "2");
  ASSERT_EQ(net_.init(), nccl::kSuccess);
  EXPECT_EQ(device_count(), 1);
  EXPECT_EQ(Log::count(nccl::kLogInfo, "version "), 1u) << Log::text();
  EXPECT_EQ(Log::count(nccl::kLogInfo, "1 device, 2 rails, GPUDirect off"), 1u) << Log::text();
  EXPECT_EQ(Log::count(nccl::kLogWarn), 0u) << Log::text();
  finalize();
}

TEST_F(Lifecycle, InitMayBeCalledAnyNumberOfTimes) {
  void* contexts[3] = {};
  for (void*& context : contexts) {
    ASSERT_EQ(net_.init_into(&context), nccl::kSuccess);
    EXPECT_NE(context, nullptr);
  }
  EXPECT_EQ(Log::count(nccl::kLogInfo, "version "), 1u);
  EXPECT_EQ(net_.finalize(contexts[1]), nccl::kSuccess);
  EXPECT_EQ(net_.finalize(contexts[1]), nccl::kSuccess);  // twice
  EXPECT_EQ(net_.finalize(contexts[0]), nccl::kSuccess);
  EXPECT_EQ(device_count(), 1) << "one communicator is left";
  EXPECT_EQ(net_.finalize(contexts[2]), nccl::kSuccess);
  int count = 0;
  EXPECT_EQ(net_.devices(&count), nccl::kInternalError) << "it was the last one";
}

TEST_F(Lifecycle, FinalizeTakesAnyContext) {
  int other = 0;
  EXPECT_EQ(net_.finalize(nullptr),
            nccl::kSuccess);  // as NCCL 2.28 does after a failed init
  EXPECT_EQ(net_.finalize(&other), nccl::kSuccess);
  ASSERT_EQ(net_.init(), nccl::kSuccess);
  EXPECT_EQ(net_.finalize(nullptr), nccl::kSuccess);
  EXPECT_EQ(net_.finalize(&other), nccl::kSuccess);
  EXPECT_EQ(device_count(), 1) << "a context that is not ours ended nothing";
  finalize();
  finalize();
}

TEST_F(Lifecycle, IsSilentBeforeInitAndAfterTheLastFinalize) {
  int count = 0;
  EXPECT_EQ(net_.devices(&count), nccl::kInternalError);
  EXPECT_TRUE(Log::lines().empty());
  ASSERT_EQ(net_.init(), nccl::kSuccess);
  finalize();
  Log::clear();
  EXPECT_EQ(net_.devices(&count), nccl::kInternalError);
  EXPECT_EQ(net_.close_send(&count), nccl::kInternalError);
  EXPECT_TRUE(Log::lines().empty()) << Log::text();
}

TEST_F(Lifecycle, WorksWithoutALogger) {
  ASSERT_EQ(net_.init(nullptr), nccl::kSuccess);
  EXPECT_EQ(device_count(), 1);
  finalize();
}

TEST_F(Lifecycle, ReadsTheSettingsAgainAfterTheLastFinalize) {
  ASSERT_EQ(net_.init(), nccl::kSuccess);
  finalize();
  set("NCCL_SLIME_RAILS_PER_IF", "3");
  ASSERT_EQ(net_.init(), nccl::kSuccess);
  EXPECT_EQ(Log::count(nccl::kLogInfo, "3 rails"), 1u) << Log::text();
  finalize();
}

TEST_F(Lifecycle, DisableMeansNoDevicesAndNoFailure) {
  set("NCCL_SLIME_DISABLE", "1");
  ASSERT_EQ(net_.init(), nccl::kSuccess);
  EXPECT_EQ(device_count(), 0);
  EXPECT_EQ(Log::count(nccl::kLogInfo, "NCCL_SLIME_DISABLE"), 1u) << Log::text();
  EXPECT_EQ(Log::count(nccl::kLogWarn), 0u) << Log::text();
  EXPECT_EQ(getenv("NCCL_PROTO"), nullptr);
  void* listening = nullptr;
  HandleBytes handle{};
  EXPECT_EQ(net_.listen(0, handle.data(), &listening), nccl::kInternalError);
  EXPECT_EQ(listening, nullptr);
  finalize();
}

TEST_F(Lifecycle, NoNicMeansNoDevicesAndNoFailure) {
  set("NCCL_SLIME_IFNAME", "=none-of-this-name");
  ASSERT_EQ(net_.init(), nccl::kSuccess);
  EXPECT_EQ(device_count(), 0);
  EXPECT_EQ(Log::count(nccl::kLogInfo, "no devices"), 1u) << Log::text();
  finalize();
}

TEST_F(Lifecycle, MalformedSettingMeansNoDevicesAndAWarning) {
  set("NCCL_SLIME_MIN_STRIPE", "banana");
  ASSERT_EQ(net_.init(), nccl::kSuccess);
  EXPECT_EQ(device_count(), 0);
  EXPECT_EQ(Log::count(nccl::kLogWarn, "NCCL_SLIME_MIN_STRIPE"), 1u) << Log::text();
  EXPECT_EQ(Log::count(nccl::kLogWarn, "banana"), 1u) << Log::text();
  finalize();
}

TEST_F(Lifecycle, UnknownSettingIsNamedWithItsNeighbour) {
  set("NCCL_SLIME_MIN_STRIPES", "64K");
  ASSERT_EQ(net_.init(), nccl::kSuccess);
  EXPECT_EQ(device_count(), 1);
  EXPECT_EQ(Log::count(nccl::kLogWarn, "NCCL_SLIME_MIN_STRIPES"), 1u) << Log::text();
  finalize();
}

TEST_F(Lifecycle, ForbidsLl128WhereTheUserDidNotChoose) {
  ASSERT_EQ(net_.init(), nccl::kSuccess);
  ASSERT_NE(getenv("NCCL_PROTO"), nullptr);
  EXPECT_STREQ(getenv("NCCL_PROTO"), "^LL128");
  EXPECT_EQ(Log::count(nccl::kLogInfo, "NCCL_PROTO"), 1u) << Log::text();
  finalize();
  ASSERT_EQ(net_.init(), nccl::kSuccess);  // what we set ourselves is no choice of the user's
  EXPECT_EQ(Log::count(nccl::kLogWarn), 0u) << Log::text();
  finalize();
}

TEST_F(Lifecycle, KeepsTheUsersNcclProto) {
  set("NCCL_PROTO", "Simple");
  ASSERT_EQ(net_.init(), nccl::kSuccess);
  EXPECT_STREQ(getenv("NCCL_PROTO"), "Simple");
  EXPECT_EQ(Log::count(nccl::kLogInfo, "NCCL_PROTO"), 0u);
  EXPECT_EQ(Log::count(nccl::kLogWarn), 0u);
  finalize();
}

TEST_F(Lifecycle, WarnsOfAnNcclProtoThatAllowsLl128) {
  set("NCCL_PROTO", "LL128");
  ASSERT_EQ(net_.init(), nccl::kSuccess);
  EXPECT_STREQ(getenv("NCCL_PROTO"), "LL128");
  EXPECT_EQ(Log::count(nccl::kLogWarn, "NCCL_PROTO=LL128"), 1u) << Log::text();
  finalize();
}

TEST_F(Lifecycle, FinalizeClosesWhatWasLeftOpen) {
  ASSERT_EQ(net_.init(), nccl::kSuccess);
  const size_t before = open_descriptors();
  auto pair = std::make_unique<Pair>(net_);
  ASSERT_TRUE(pair->connected);
  HandleBytes handle{};
  void *listening = nullptr, *half_open = nullptr;
  ASSERT_EQ(net_.listen(0, handle.data(), &listening), nccl::kSuccess);
  ASSERT_EQ(net_.connect(0, handle.data(), &half_open), nccl::kSuccess);
  EXPECT_EQ(half_open, nullptr) << "nobody accepts";
  EXPECT_GT(open_descriptors(), before);
  finalize();
  EXPECT_TRUE(wait_until([&] { return open_descriptors() <= before; }))
      << open_descriptors() << " descriptors, before " << before;
  EXPECT_EQ(net_.close_send(pair->send), nccl::kInternalError);
  EXPECT_EQ(net_.close_recv(pair->recv), nccl::kInternalError);
  EXPECT_EQ(net_.close_listen(listening), nccl::kInternalError);
  pair->send = pair->recv = pair->listening = nullptr;
}

TEST_F(Lifecycle, ForkedChildLeavesItsParentsConnectionsAlone) {
  ASSERT_EQ(net_.init(), nccl::kSuccess);
  Pair pair(net_);
  ASSERT_TRUE(pair.connected);
  Buffer from(net_, pair.send, 1 << 20), to(net_, pair.recv, 1 << 20);
  from.fill(1);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool refused = net_.close_send(pair.send) == nccl::kInternalError &&
                         net_.close_recv(pair.recv) == nccl::kInternalError &&
                         net_.finalize() == nccl::kSuccess;
    exit(refused ? 0 : 1);  // as a DataLoader worker ends: with its destructors
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  Open sent, received;
  EXPECT_TRUE(transfer(net_, pair, from, to, from.bytes, &sent, &received)) << Log::text();
  EXPECT_EQ(memcmp(from.data(), to.data(), from.bytes), 0);
}

TEST_F(Lifecycle, ForkedChildMayStartAnew) {
  ASSERT_EQ(net_.init(), nccl::kSuccess);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    bool good = net_.init() == nccl::kSuccess;
    {
      Pair pair(net_);
      good = good && pair.connected;
    }
    finalize();
    exit(good && !HasFailure() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  finalize();
}

TEST_F(Lifecycle, WritesItsCountersWhenTheLastConnectionCloses) {
  const std::string path = testing::TempDir() + "slime-stats-" + std::to_string(getpid());
  std::filesystem::remove(path);
  set("NCCL_SLIME_STATS", (path.substr(0, path.rfind('-')) + "-%p").c_str());
  ASSERT_EQ(net_.init(), nccl::kSuccess);
  {
    Pair pair(net_);
    ASSERT_TRUE(pair.connected);
    Buffer from(net_, pair.send, 300000), to(net_, pair.recv, 300000);
    Open sent, received;
    ASSERT_TRUE(transfer(net_, pair, from, to, from.bytes, &sent, &received));
    EXPECT_FALSE(std::filesystem::exists(path));
  }
  ASSERT_TRUE(std::filesystem::exists(path)) << Log::text();
  const auto document = nlohmann::json::parse(std::ifstream(path));
  ASSERT_EQ(document.at("rails").size(), 1u);
  EXPECT_EQ(document.at("rails")[0].at("device"), "lo");
  EXPECT_GE(document.at("rails")[0].at("bytes_sent"), 300000);
  EXPECT_GE(document.at("rails")[0].at("bytes_received"), 300000);
  ASSERT_EQ(document.at("interfaces").size(), 1u);
  EXPECT_EQ(document.at("interfaces")[0].at("interface"), "lo");
  EXPECT_GE(document.at("interfaces")[0].at("bytes_sent"), 300000);
  EXPECT_GE(document.at("interfaces")[0].at("bytes_received"), 300000);
  EXPECT_EQ(Log::count(nccl::kLogInfo, "doorbells"), 1u) << Log::text();
  finalize();
  EXPECT_EQ(Log::count(nccl::kLogInfo, "doorbells"), 1u) << "nothing new happened";
  const auto after = nlohmann::json::parse(std::ifstream(path));
  EXPECT_EQ(after.at("rails"), document.at("rails"));
  std::filesystem::remove(path);
}

TEST_F(Lifecycle, WarnsOnceOfCountersThatCannotBeWritten) {
  set("NCCL_SLIME_STATS", "/nonexistent/stats.json");
  ASSERT_EQ(net_.init(), nccl::kSuccess);
  for (int round = 0; round < 2; ++round) {
    Pair pair(net_);
    EXPECT_TRUE(pair.connected);
  }
  finalize();
  EXPECT_EQ(Log::count(nccl::kLogWarn, "/nonexistent/stats.json"), 1u) << Log::text();
}

// NCCL 2.24 and later unload the plugin with the last communicator and then call init again. Tables
// before v11 have no finalize, so init is all that the plugin gets, and NCCL then takes all devices
// that are reported for physical ones.
TEST_F(Lifecycle, OlderInitStartsAfreshWhenNothingIsOpen) {
  on_two_nics(NicKind::kPci, [this] {
    set("NCCL_SLIME_IFNAME", "one0,one1");
    set("NCCL_SLIME_RAILS_PER_DEVICE", "1");
    const auto api = Api::of(plugin_, 9);
    Api& older = *api;
    ASSERT_EQ(older.init(), nccl::kSuccess);
    int merged = -1;
    ASSERT_EQ(older.merge(&merged, {0, 1}), nccl::kSuccess) << Log::text();
    EXPECT_EQ(merged, 2);
    EXPECT_EQ(device_count(), 3);
    {
      Pair pair(older, merged);
      EXPECT_TRUE(pair.connected);
      ASSERT_EQ(older.init(), nccl::kSuccess);
      EXPECT_EQ(device_count(), 3) << "in use";
    }
    ASSERT_EQ(older.init(), nccl::kSuccess);
    EXPECT_EQ(device_count(), 2);
  });
}

}  // namespace
}  // namespace slime::boundary
