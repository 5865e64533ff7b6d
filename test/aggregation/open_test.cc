// Opening a Context: what cannot work, and that every rank hears of it.
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "test/aggregation/support.h"
#include "test/support/local_switch.h"
#include "test/support/unused_address.h"

namespace slime::aggregation {
namespace {

// What MPI_Allgather does, between threads.
class ThreadGather {
 public:
  explicit ThreadGather(uint32_t ranks) : blobs_(ranks) {}

  AllGather of(uint32_t rank) {
    return [this, rank](const void* own, size_t bytes, void* all) {
      std::unique_lock lock(mutex_);
      const auto* const first = static_cast<const char*>(own);
      blobs_[rank].assign(first, first + bytes);
      ++came_;
      changed_.notify_all();
      const bool complete = changed_.wait_for(lock, std::chrono::seconds(60),
                                              [this] { return came_ == blobs_.size(); });
      for (size_t i = 0; i < blobs_.size() && complete; ++i) {
        const std::vector<char>& blob = blobs_[swapped_ ? blobs_.size() - 1 - i : i];
        std::memcpy(static_cast<char*>(all) + i * bytes, blob.data(), bytes);
      }
      return complete;
    };
  }
  void swap() { swapped_ = true; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::vector<char>> blobs_;
  size_t came_ = 0;
  bool swapped_ = false;
};

class Open : public testing::Test {
 protected:
  // Of one rank alone.
  static Outcome open(const Options& options) {
    std::unique_ptr<Context> context;
    Outcome outcome = Context::open(options, &context);
    EXPECT_EQ(context != nullptr, static_cast<bool>(outcome));
    return outcome;
  }
  static Options alone() { return options_for(1, "127.0.0.1:1"); }
  // Ranks with a gather of their own; `change` is for each rank's options.
  static std::vector<Outcome> open_all(ThreadGather& gather, Options options,
                                       const std::function<void(Options&)>& change) {
    std::vector<Outcome> outcomes(options.ranks);
    std::vector<std::unique_ptr<Context>> contexts(options.ranks);
    options.rendezvous.clear();
    each_rank(options.ranks, [&](uint32_t rank) {
      Options own = options;
      own.rank = rank;
      own.all_gather = gather.of(rank);
      change(own);
      outcomes[rank] = Context::open(own, &contexts[rank]);
    });
    each_rank(options.ranks, [&](uint32_t rank) { contexts[rank].reset(); });
    return outcomes;
  }

  LocalSwitch switch_;
  LogCapture log_;
};

TEST_F(Open, RefusesWhatCannotBe) {
  expect_fails(Context::open(alone(), nullptr), Code::kInvalid, "context is NULL");
  Options options = alone();
  options.ranks = 0;
  expect_fails(open(options), Code::kInvalid, "rank 0 of 0");
  options.ranks = 33;
  expect_fails(open(options), Code::kInvalid, "1 to 32 ranks");
  options = alone();
  options.rank = 1;
  expect_fails(open(options), Code::kInvalid, "rank 1 of 1");
  options = options_for(2, "127.0.0.1:1");
  options.rendezvous.clear();
  expect_fails(open(options), Code::kInvalid, "neither");
  options.rendezvous = "127.0.0.1:5000";
  options.all_gather = [](const void*, size_t, void*) { return true; };
  expect_fails(open(options), Code::kInvalid, "both");
  options.all_gather = nullptr;
  options.rendezvous = "127.0.0.1";
  expect_fails(open(options), Code::kConfig, "no port");
  options.rendezvous = "no such host:1";
  expect_fails(open(options), Code::kConfig, "Options::rendezvous");
}

TEST_F(Open, RefusesSettingsThatCannotBe) {
  Options options = alone();
  options.slots = 70'000;
  expect_fails(open(options), Code::kConfig, "NCCL_SLIME_SWITCH_SLOTS=\"70000\"");
  options = alone();
  options.connect_timeout_s = -1;
  expect_fails(open(options), Code::kConfig, "NCCL_SLIME_CONNECT_TIMEOUT");
  options = alone();
  options.settings["NCCL_SLIME_SWITCH_LANE"] = "8";
  expect_fails(open(options), Code::kInvalid, "nearest is NCCL_SLIME_SWITCH_LANES");
  options.settings = {{"PATH", "/"}};
  expect_fails(open(options), Code::kInvalid, "\"PATH\" is no setting");
  options.settings = {{"NCCL_SLIME_SWITCH_LANES", "9"}};
  expect_fails(open(options), Code::kConfig, "NCCL_SLIME_SWITCH_LANES=\"9\"");
  options = alone();
  options.device = 7;
  expect_fails(open(options), Code::kConfig, "no device 7");
  options = alone();
  options.interfaces = "=none";
  expect_fails(open(options), Code::kConfig, "there are 0");
  options = alone();
  options.key_file = "/nonexistent/key";
  expect_fails(open(options), Code::kSystem, "/nonexistent/key");
  options = options_for(1, "");
  unsetenv("NCCL_SLIME_SWITCH");
  expect_fails(open(options), Code::kConfig, "NCCL_SLIME_SWITCH");
}

TEST_F(Open, OptionsComeBeforeTheEnvironment) {
  setenv("NCCL_SLIME_SWITCH", "127.0.0.1:1", 1);
  setenv("NCCL_SLIME_SWITCH_SLOTS", "3", 1);
  EXPECT_OK(open(options_for(1, switch_.address())));
  setenv("NCCL_SLIME_SWITCH", switch_.address().c_str(), 1);
  EXPECT_OK(open(options_for(1, "")));
  setenv("NCCL_SLIME_SWITCH_SLOTS", "none", 1);
  expect_fails(open(options_for(1, "")), Code::kConfig, "NCCL_SLIME_SWITCH_SLOTS=\"none\"");
  unsetenv("NCCL_SLIME_SWITCH");
  unsetenv("NCCL_SLIME_SWITCH_SLOTS");
}

TEST_F(Open, WithoutASwitchItFailsAtAllRanks) {
  const Group group(options_for(3, "127.0.0.1:1"));
  for (const Outcome& outcome : group.outcomes) {
    expect_fails(outcome, Code::kRemote, "127.0.0.1:1");
  }
}

TEST_F(Open, WithoutASwitchTheRanksMaySumUpThemselves) {
  Options options = options_for(3, "127.0.0.1:1");
  options.settings["NCCL_SLIME_SWITCH_OPTIONAL"] = "1";
  Group group(options);
  ASSERT_TRUE(group.well());
  group.each([](Context& context, uint32_t rank) {
    std::vector<float> data(20'000, static_cast<float>(rank));
    EXPECT_OK(context.all_reduce({data.data(), data.data(), data.size()}));
    EXPECT_EQ(data, std::vector<float>(20'000, 3));
    EXPECT_TRUE(context.statistics().without_switch);
    EXPECT_EQ(context.statistics().lost_switches, 1u);
  });
}

// More of it is in rendezvous_test.cc.
TEST_F(Open, RendezvousThatNeverCompletes) {
  Options options = options_for(3, switch_.address());
  options.connect_timeout_s = 1;
  expect_fails(open(options), Code::kTimeout, "rank 1, 2 of 3 did not come in time");
  options.rank = 1;
  expect_fails(open(options), Code::kTimeout, "nobody listens there");
  options.rank = 0;
  const Fd taken = listen_on(SocketAddress::parse(options.rendezvous).value()).value();
  expect_fails(open(options), Code::kSystem, "another process has this address");
}

TEST_F(Open, GathersByTheCallersMeans) {
  ThreadGather gather(3);
  for (const Outcome& outcome :
       open_all(gather, options_for(3, switch_.address()), [](Options&) {})) {
    EXPECT_OK(outcome);
  }
}

TEST_F(Open, TheCallersMeansMayFail) {
  Options options = options_for(2, switch_.address());
  options.rendezvous.clear();
  options.all_gather = [](const void*, size_t, void*) { return false; };
  expect_fails(open(options), Code::kRemote, "all-gather that Options::all_gather names failed");
  options.all_gather = [](const void*, size_t, void*) { return true; };  // and leaves zeros
  expect_fails(open(options), Code::kRemote, "does not speak this version");
  ThreadGather swapping(2);
  swapping.swap();
  for (const Outcome& outcome :
       open_all(swapping, options_for(2, switch_.address()), [](Options&) {})) {
    expect_fails(outcome, Code::kInvalid, "keep the order of ranks");
  }
}

// A program's all-gather has no deadline: who fails before must take part in it all the same.
TEST_F(Open, OptionsThatFailAtOneRankAreToldToAll) {
  const auto change = [](Options& options) {
    if (options.rank == 1) options.switch_address.clear();
    if (options.rank == 2) options.slots = 70'000;
  };
  ThreadGather gather(3);
  const auto outcomes = open_all(gather, options_for(3, switch_.address()), change);
  expect_fails(outcomes[0], Code::kRemote, "rank 1");
  expect_fails(outcomes[1], Code::kConfig, "no switch is named");
  expect_fails(outcomes[2], Code::kConfig, "NCCL_SLIME_SWITCH_SLOTS");
}

TEST_F(Open, WhatOneRankFailsAtAloneIsToldToAll) {
  ThreadGather gather(3);
  const auto outcomes = open_all(gather, options_for(3, switch_.address()), [](Options& options) {
    if (options.rank == 1) options.device = 9;
  });
  expect_fails(outcomes[0], Code::kRemote, "rank 1 failed before the ranks met");
  expect_fails(outcomes[1], Code::kConfig, "no device 9");
  expect_fails(outcomes[2], Code::kRemote, "rank 1 failed before the ranks met");
}

TEST_F(Open, DifferentModesDoNotMeet) {
  ThreadGather gather(2);
  const auto outcomes = open_all(gather, options_for(2, switch_.address()), [](Options& options) {
    if (options.rank == 1) options.mode = Mode::kBypass;
  });
  expect_fails(outcomes[0], Code::kInvalid, "rank 1, runs in mode bypass, and rank 0 in normal");
  expect_fails(outcomes[1], Code::kInvalid, "give all ranks the same mode");
}

}  // namespace
}  // namespace slime::aggregation
