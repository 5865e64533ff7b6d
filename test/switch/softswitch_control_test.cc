// The software switch under its controller: beginning, end, jobs that come and go.
#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <thread>

#include "switch/softswitch/softswitch.h"
#include "test/switch/udp_worker.h"

namespace slime::net {
namespace {

using test::now_ms;
using test::open_switch;
using test::options_on;
using test::run_round;
using test::Team;
using test::Worker;
using testing::HasSubstr;

// Contributions of one worker, as fast as it can, until the end of the scope.
class Traffic {
 public:
  explicit Traffic(Worker& worker)
      : thread_([this, &worker] {
          for (uint32_t i = 0; !stop_.load(); ++i) {
            worker.contribute(static_cast<uint16_t>(i % 8), i / 8 + 1, test::Words(64, i));
            sent_.fetch_add(1);
            char drain[64];
            while (recv(worker.fd(), drain, sizeof drain, MSG_DONTWAIT) >= 0) continue;
          }
        }) {}
  ~Traffic() {
    stop_ = true;
    thread_.join();
  }
  void wait_for(uint64_t more) {
    const uint64_t until = sent_ + more, end = now_ms() + test::kPatienceMs;
    while (sent_ < until && now_ms() < end) std::this_thread::yield();
  }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> sent_{0};
  std::thread thread_;
};

TEST(SoftSwitchControl, PicksPortsInARow) {
  SoftSwitchOptions options = options_on();
  options.shards = 16;
  const auto soft = open_switch(options);
  const SwitchShape shape = soft->shape();
  EXPECT_NE(shape.address.port(), 0);
  EXPECT_EQ(shape.shards, 16u);
  EXPECT_EQ(shape.max_lanes, 256u);
  EXPECT_EQ(shape.slot_bytes, uint64_t{64} << 20);
  EXPECT_EQ(shape.formats, sap::kKnownFormats);
  Team team(*soft, 2);
  team.spec.slots = 32;
  team.join(*soft);
  for (uint16_t slot = 0; slot < 32; ++slot) run_round(team.workers, slot, 1, 8);

  options.address = shape.address;
  const auto second = SoftSwitch::open(options);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, EADDRINUSE);
  EXPECT_THAT(second.error().what, HasSubstr(shape.address.to_string()));
}

TEST(SoftSwitchControl, SaysWhichOptionIsWrong) {
  const auto error_of = [](auto change) {
    SoftSwitchOptions options = options_on();
    change(options);
    const auto soft = SoftSwitch::open(options);
    return soft ? std::string("none") : soft.error().what;
  };
  EXPECT_THAT(error_of([](auto& o) { o.shards = 0; }), HasSubstr("shards 0"));
  EXPECT_THAT(error_of([](auto& o) { o.shards = 17; }), HasSubstr("shards 17"));
  EXPECT_THAT(error_of([](auto& o) { o.max_lanes = 2049; }), HasSubstr("max_lanes 2049"));
  EXPECT_THAT(error_of([](auto& o) { o.formats = 1; }), HasSubstr("formats i32: i32 and u32"));
  EXPECT_THAT(error_of([](auto& o) { o.formats |= 1 << 5; }), HasSubstr("formats"));
  EXPECT_THAT(error_of([](auto& o) { o.slot_bytes = 0; }), HasSubstr("slot_bytes"));
  EXPECT_THAT(error_of([](auto& o) { o.address = SocketAddress(); }), HasSubstr("0.0.0.0"));
  EXPECT_THAT(error_of([](auto& o) { o.address.set_port(65535); }), HasSubstr("65535"));
  EXPECT_THAT(
      error_of([](auto& o) { o.address = SocketAddress::parse("192.0.2.1").value(); }),  // RFC 5737
      HasSubstr("no interface"));
}

TEST(SoftSwitchControl, FenceMakesTheOldGenerationStrangers) {
  const auto soft = open_switch();
  Team team(*soft, 2);
  team.join(*soft);
  for (uint32_t epoch = 1; epoch <= 3; ++epoch) run_round(team.workers, 2, epoch, 16);
  team.workers[0].contribute(2, 4, {1});
  ASSERT_TRUE(soft->fence(1, 8, test::kToken + 1));
  team.workers[1].contribute(2, 4, {1});
  const auto packet = team.workers[1].receive();
  ASSERT_TRUE(packet);
  EXPECT_EQ(packet->words, test::Words{static_cast<uint32_t>(sap::Rejection::kGeneration)});
  for (uint8_t child : {0, 1}) team.workers[child].be(1, 8, child, test::kToken + 1);
  for (uint32_t epoch = 1; epoch <= 3; ++epoch) run_round(team.workers, 2, epoch, 16);
}

TEST(SoftSwitchControl, UnknownJobsAreErrors) {
  const auto soft = open_switch();
  EXPECT_THAT(soft->remove_job(5).error().what, HasSubstr("no job 5"));
  EXPECT_THAT(soft->fence(5, 1, 0).error().what, HasSubstr("no job 5"));
  EXPECT_THAT(soft->totals(5).error().what, HasSubstr("no job 5"));
}

TEST(SoftSwitchControl, JobsComeAndGoUnderTraffic) {
  const auto soft = open_switch();
  Team busy(*soft, 2, 1), calm(*soft, 2, 2);
  calm.join(*soft);
  {
    Traffic traffic(busy.workers[0]);
    for (int i = 0; i < 50; ++i) {
      busy.join(*soft);
      traffic.wait_for(20);
      run_round(calm.workers, 1, static_cast<uint32_t>(i + 1), 64, test::kResendMs);
      ASSERT_TRUE(soft->fence(1, 9, test::kToken));
      ASSERT_TRUE(soft->totals(1));
      ASSERT_TRUE(soft->remove_job(1));
    }
  }
  EXPECT_EQ(soft->slot_bytes_used(), Slots::bytes_for(8, 256));
  busy.workers.clear();
  Team again(*soft, 2, 1);
  again.join(*soft);
  run_round(again.workers, 0, 1, 64,
            test::kResendMs);  // what is left of the flood may be before it
}

TEST(SoftSwitchControl, StopsUnderTraffic) {
  for (int i = 0; i < 10; ++i) {
    auto soft = open_switch();
    Team team(*soft, 1);
    team.join(*soft);
    Traffic traffic(team.workers[0]);
    traffic.wait_for(200);
    const uint64_t begin = now_ms();
    soft.reset();
    EXPECT_LT(now_ms() - begin, uint64_t{test::kPatienceMs});
  }
}

// Stopping and commands do not wait until an idle thread looks up by itself. Of some series of
// waits one is undisturbed; without a bell all are as slow.
TEST(SoftSwitchControl, TheBellIsHeard) {
  constexpr int kWaits = 10;
  SoftSwitchOptions options = options_on();
  options.shards = 1;
  const auto is_quick = [&](const std::function<void()>& step) {
    for (const uint64_t end = now_ms() + test::kPatienceMs; now_ms() < end;) {
      const uint64_t begin = now_ms();
      for (int i = 0; i < kWaits; ++i) step();
      if (now_ms() - begin < kWaits * ShardThread::kIdleUs / 1000 / 4) return true;
    }
    return false;
  };
  auto soft = open_switch(options);
  Team team(*soft, 1);
  EXPECT_TRUE(is_quick([&] { team.join(*soft); }));
  EXPECT_TRUE(is_quick([&] { soft = open_switch(options); }));
}

TEST(SoftSwitchControl, MemoryIsLimited) {
  SoftSwitchOptions options = options_on();
  const uint64_t one_job = Slots::bytes_for(8, 256);
  options.slot_bytes = 2 * one_job + 100;
  const auto soft = open_switch(options);
  Team first(*soft, 1, 1), second(*soft, 1, 2), third(*soft, 1, 3);
  first.join(*soft);
  second.join(*soft);
  EXPECT_EQ(soft->slot_bytes_used(), 2 * one_job);
  const auto refused = soft->add_job(third.spec);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, Status::kNoMemory);
  EXPECT_THAT(refused.error().what, HasSubstr(std::to_string(one_job)));
  EXPECT_THAT(refused.error().what, HasSubstr("100 of the"));
  first.join(*soft);  // takes its own place
  EXPECT_EQ(soft->slot_bytes_used(), 2 * one_job);
  ASSERT_TRUE(soft->remove_job(2));
  third.join(*soft);
  run_round(third.workers, 0, 1, 256);
}

TEST(SoftSwitchControl, RefusesJobsThatCannotWork) {
  const auto soft = open_switch();
  const auto error_of = [&](auto change) {
    Team team(*soft, 2);
    change(team.spec);
    const auto added = soft->add_job(team.spec);
    return added ? std::string("none") : added.error().what;
  };
  EXPECT_THAT(error_of([](JobSpec& s) { s.max_lanes = 257; }), HasSubstr("257 lanes"));
  EXPECT_THAT(error_of([](JobSpec& s) { s.children.clear(); }), HasSubstr("1 to 32 children"));
  EXPECT_THAT(error_of([](JobSpec& s) { s.slots = 0; }), HasSubstr("slots"));
  EXPECT_THAT(error_of([](JobSpec& s) { s.children[1].set_port(0); }), HasSubstr("child"));
  EXPECT_THAT(error_of([](JobSpec& s) {
                s.parent = {.address = SocketAddress::parse("[::1]:9").value(), .child = 0};
              }),
              HasSubstr("parent [::1]:9"));
  EXPECT_EQ(soft->slot_bytes_used(), 0u);
}

TEST(SoftSwitchControl, AnIdleSwitchSleeps) {
  SoftSwitchOptions options = options_on();
  options.shards = 1;
  options.busy_poll_us = 200;
  const auto soft = open_switch(options);
  Team team(*soft, 2);
  team.join(*soft);
  run_round(team.workers, 0, 1, 16);
  const uint64_t before = soft->cpu_ns(0);
  EXPECT_FALSE(team.workers[0].receive(500));  // nobody sends
  EXPECT_LT(soft->cpu_ns(0) - before, 100'000'000u);
}

}  // namespace
}  // namespace slime::net
