// Ranks whose tables differ in where to use CollNet would hang in their first operation of such
// a size: they do not connect. Each rank is a copy of the plugin, as each is a process with NCCL.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "test/boundary/support/coll_api.h"

namespace slime::boundary {
namespace {

constexpr int kVersion = 12;

struct Member {
  Member() : net(Api::of(plugin, kVersion)), coll(CollApi::of(plugin, kVersion)) {}
  const Plugin plugin;
  const std::unique_ptr<Api> net;
  const std::unique_ptr<CollApi> coll;
  HandleBytes handle{};
  void *listening = nullptr, *comm = nullptr;
  ResultCode connected = nccl::kInProgress;
};

class TunerAgreement : public PluginTest {
 protected:
  TunerAgreement() {
    set("NCCL_SLIME_SWITCH", "127.0.0.1:9");
    set("NCCL_SLIME_SWITCH_OPTIONAL", "1");  // no switch is needed to agree
    set("NCCL_SLIME_CONNECT_TIMEOUT", "20");
  }
  ~TunerAgreement() override { std::filesystem::remove(path_); }

  // A rank reads its settings now.
  void start(Member& member, const char* rules) {
    if (rules != nullptr) std::ofstream(path_) << rules;
    set("NCCL_SLIME_TUNER_FILE", rules != nullptr ? path_.c_str() : "");
    ASSERT_EQ(member.net->init(), nccl::kSuccess);
    ASSERT_EQ(member.coll->init(), nccl::kSuccess);
    ASSERT_EQ(member.coll->listen(0, member.handle.data(), &member.listening), nccl::kSuccess);
  }

  void connect() {
    void* handles[] = {members_[0].handle.data(), members_[1].handle.data()};
    const auto one = [&](int rank) {
      Member& member = members_[rank];
      member.connected = member.coll->connect(handles, 2, rank, member.listening, &member.comm);
    };
    std::thread other(one, 1);
    one(0);
    other.join();
  }

  void stop() {
    const auto one = [&](int rank) {
      Member& member = members_[rank];
      if (member.comm == nullptr) return;
      EXPECT_EQ(member.coll->close_listen(member.listening), nccl::kSuccess);
      EXPECT_EQ(member.coll->close_coll(member.comm), nccl::kSuccess);
    };
    std::thread other(one, 1);
    one(0);
    other.join();
    for (Member& member : members_) {
      EXPECT_EQ(member.coll->finalize(), nccl::kSuccess);
      EXPECT_EQ(member.net->finalize(), nccl::kSuccess);
    }
  }

  void expect_refused() {
    for (const Member& member : members_) {
      EXPECT_EQ(member.connected, nccl::kInvalidUsage) << Log::text();
      EXPECT_EQ(member.comm, nullptr);
    }
    EXPECT_EQ(Log::count(nccl::kLogWarn, "the ranks 0 and 1 were told differently"), 2u)
        << Log::text();
  }

  const std::string path_ = "/tmp/slime-tuner-agreement-" + std::to_string(getpid());
  Member members_[2];
};

TEST_F(TunerAgreement, SameRulesConnect) {
  start(members_[0], "slime-tuner 1\nprefer 1 2 2 2\navoid 5 6 2 2\n");
  start(members_[1], "slime-tuner 1\n# written by another\navoid 5 6 2 2\nprefer 1 2 2 2\n");
  connect();
  for (const Member& member : members_) EXPECT_EQ(member.connected, nccl::kSuccess) << Log::text();
  stop();
}

TEST_F(TunerAgreement, OtherRulesDoNot) {
  start(members_[0], "slime-tuner 1\nprefer 1 2 2 2\n");
  start(members_[1], "slime-tuner 1\nprefer 1 3 2 2\n");
  connect();
  expect_refused();
  stop();
}

TEST_F(TunerAgreement, NorDoesAFileOnOneSideOnly) {
  start(members_[0], nullptr);
  start(members_[1], "slime-tuner 1\nprefer 1 3 2 2\n");
  connect();
  expect_refused();
  stop();
}

TEST_F(TunerAgreement, NorDoesAFileThatOneCannotUse) {
  start(members_[0], "slime-tuner 1\nprefer 1 3 2 2\n");
  start(members_[1], "slime-tuner 1\nprefer 1 x 2 2\n");
  connect();
  expect_refused();
  stop();
}

}  // namespace
}  // namespace slime::boundary
