// Workers with several rails to their switch.
#include <numeric>

#include "test/collnet/simulation/simulated_job.h"

namespace slime::test {
namespace {

void expect_sum(Job& job, size_t count) {
  std::vector<std::vector<int32_t>> all(job.simulation.workers(), std::vector<int32_t>(count));
  for (auto& one : all) std::iota(one.begin(), one.end(), 1);
  ASSERT_TRUE(job.reduce(pointers(all), DataType::kInt32));
  std::vector<int32_t> expected(count);
  for (size_t i = 0; i < count; ++i) expected[i] = static_cast<int32_t>((i + 1) * all.size());
  for (const auto& one : all) ASSERT_EQ(one, expected);
}

TEST(WorkerRails, AllCarryTheSameAndReachAllShards) {
  for (const uint32_t shards : {1, 2, 3}) {
    Job job({.leaves = {3}, .slots = 4 * shards, .shards = shards, .rails = 4});
    expect_sum(job, size_t{64} * 4 * shards * 10);
    for (uint32_t rail = 1; rail < 4; ++rail) {
      EXPECT_EQ(job.simulation.sent_on(rail), job.simulation.sent_on(0)) << rail;
    }
  }
}

TEST(WorkerRails, BelowATreeAndInBadWeather) {
  Job job({.leaves = {2, 3},
           .slots = 8,
           .shards = 2,
           .rails = 3,
           .network = {.seed = 5, .loss = 0.05, .duplication = 0.05, .jitter_ns = 1'000'000}});
  expect_sum(job, 3000);
}

// One operation, and the rails that work are done with their slots long before silence is noticed.
TEST(WorkerRails, ALostRailIsToldFromALostSwitch) {
  Job job({.leaves = {2}, .rails = 2});
  job.simulation.cut_rail(0, 1);
  std::vector<int32_t> values(200, 3);
  uint64_t ticket;
  Worker& worker = job.simulation.worker(0);
  for (uint32_t rank : {0, 1}) {
    ASSERT_EQ(job.simulation.worker(rank).start(
                  {.send = values.data(), .receive = values.data(), .count = 200}, 1, &ticket),
              Status::kOk);
  }
  ASSERT_TRUE(job.simulation.run_until([&] { return worker.health().trouble().has_value(); },
                                       5'000'000'000));
  EXPECT_EQ(worker.health().lost_rails(), 0b10u);
  EXPECT_FALSE(job.simulation.worker(1).health().trouble())
      << "the other rank waits for this one only";
}

TEST(WorkerRails, ALostSwitchIsNoLostRail) {
  Job job({.leaves = {2}, .rails = 2});
  job.simulation.kill_switch();
  std::vector<int32_t> values(200, 3);
  uint64_t ticket;
  Worker& worker = job.simulation.worker(0);
  ASSERT_EQ(
      worker.start({.send = values.data(), .receive = values.data(), .count = 200}, 1, &ticket),
      Status::kOk);
  ASSERT_TRUE(job.simulation.run_until([&] { return worker.health().trouble().has_value(); },
                                       5'000'000'000));
  EXPECT_EQ(worker.health().lost_rails(), 0u);
}

// The rails fell silent one after the other; none of them is to blame.
TEST(WorkerRails, ASwitchThatDiesSlowlyIsNoLostRail) {
  Job job({.leaves = {2}, .slots = 4, .rails = 2});
  std::vector<std::vector<int32_t>> values(2, std::vector<int32_t>(100'000, 3));
  uint64_t ticket;
  for (uint32_t rank : {0, 1}) {
    ASSERT_EQ(job.simulation.worker(rank).start({.send = values[rank].data(),
                                                 .receive = values[rank].data(),
                                                 .count = values[rank].size()},
                                                job.simulation.now_ns(), &ticket),
              Status::kOk);
  }
  const auto wait = [&job](uint64_t ns) {
    const uint64_t until_ns = job.simulation.now_ns() + ns;
    job.simulation.run_until([&] { return job.simulation.now_ns() >= until_ns; });
  };
  wait(1'000'000);
  for (uint32_t rank : {0, 1}) job.simulation.cut_rail(rank, 1);
  wait(800'000'000);
  job.simulation.kill_switch();
  ASSERT_FALSE(job.simulation.worker(0).done(ticket));
  for (uint32_t rank : {0, 1}) {
    Worker& worker = job.simulation.worker(rank);
    ASSERT_TRUE(job.simulation.run_until([&] { return worker.health().trouble().has_value(); },
                                         9'000'000'000));
    EXPECT_EQ(worker.health().lost_rails(), 0u) << "rank " << rank;
  }
}

}  // namespace
}  // namespace slime::test
