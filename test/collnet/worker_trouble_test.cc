// How a worker names the ranks that it waits for, and notices that its switch is gone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/collnet/simulation/sums.h"

namespace slime {
namespace {

using test::any_int;
using test::Job;
using test::pointers;

TEST(Worker, NamesAStraggler) {
  Job job({.leaves = {3}});
  auto buffers = job.inputs<int32_t>(100, any_int);
  job.simulation.stop_worker(2);
  uint64_t ticket;
  for (uint32_t rank : {0, 1, 2}) {
    ASSERT_EQ(job.simulation.worker(rank).start({.send = buffers[rank].data(),
                                                 .receive = buffers[rank].data(),
                                                 .count = rank == 2 ? size_t{0} : size_t{100}},
                                                job.simulation.now_ns(), &ticket),
              Status::kOk);
  }
  std::optional<std::string> suspicion;
  ASSERT_TRUE(job.simulation.run_until(
      [&] { return (suspicion = job.simulation.worker(0).take_suspicion()).has_value(); },
      2'000'000'000));
  EXPECT_EQ(*suspicion, "2");
  EXPECT_FALSE(job.simulation.worker(0).done(ticket));
}

// Some slots wait for one rank, others for two.
TEST(Worker, NamesStragglersNotAllTheTime) {
  Job job({.leaves = {3}, .slots = 8, .lanes = 16});
  auto buffers = job.inputs<int32_t>(1000, any_int);
  uint64_t ticket;
  for (uint32_t rank : {0, 2}) {
    ASSERT_EQ(job.simulation.worker(rank).start({.send = buffers[rank].data(),
                                                 .receive = buffers[rank].data(),
                                                 .count = rank == 2 ? size_t{80} : size_t{1000}},
                                                job.simulation.now_ns(), &ticket),
              Status::kOk);
  }
  std::vector<std::string> reports;
  job.simulation.run_until(
      [&] {
        if (auto report = job.simulation.worker(0).take_suspicion()) reports.push_back(*report);
        return false;
      },
      22'000'000'000);
  EXPECT_THAT(reports, testing::ElementsAre("1", "1, 2", "1", "1, 2", "1"));
}

// Such a switch says that all have contributed, while the result was lost.
TEST(Worker, SuspectsNobodyWhoseContributionHasCome) {
  Job job({.leaves = {3}, .queries_read_no_values = true, .network = {.seed = 5, .loss = 0.6}});
  auto buffers = job.inputs<int32_t>(2000, any_int);
  const auto inputs = buffers;
  std::vector<uint64_t> tickets;
  ASSERT_TRUE(job.start(pointers(buffers), DataType::kInt32, ReduceOp::kSum, &tickets));
  ASSERT_TRUE(job.simulation.run_until([&] {
    bool all_done = true;
    for (uint32_t rank : {0, 1, 2}) {
      EXPECT_NE(job.simulation.worker(rank).take_suspicion(), "");
      all_done = all_done && job.simulation.worker(rank).done(tickets[rank]);
    }
    return all_done;
  }));
  EXPECT_GT(job.simulation.worker(0).counters().queries, 0u);
  for (size_t i = 0; i < 2000; ++i) {
    const auto sum = static_cast<int32_t>(static_cast<uint32_t>(inputs[0][i]) +
                                          static_cast<uint32_t>(inputs[1][i]) +
                                          static_cast<uint32_t>(inputs[2][i]));
    for (const auto& one : buffers) ASSERT_EQ(one[i], sum) << i;
  }
}

TEST(Worker, GivesUpOnADeadRankAndNamesIt) {
  Job job({.leaves = {2}, .request_timeout_ns = 5'000'000'000});
  auto buffers = job.inputs<int32_t>(100, any_int);
  uint64_t ticket;
  ASSERT_EQ(job.simulation.worker(0).start(
                {.send = buffers[0].data(), .receive = buffers[0].data(), .count = 100},
                job.simulation.now_ns(), &ticket),
            Status::kOk);
  ASSERT_TRUE(job.simulation.run_until(
      [&] { return job.simulation.worker(0).status() != Status::kOk; }, 10'000'000'000));
  EXPECT_EQ(job.simulation.worker(0).status(), Status::kRemote);
  EXPECT_NE(job.simulation.worker(0).failure().what.find("rank 1 has not contributed"),
            std::string::npos)
      << job.simulation.worker(0).failure().what;
}

// Rank 0 in an operation that no other rank begins.
struct Waiting {
  explicit Waiting(Job& job) : worker(job.simulation.worker(0)) {
    EXPECT_EQ(worker.start({.send = &value, .receive = &value, .count = 1}, 1, &ticket),
              Status::kOk);
  }
  Worker& worker;
  int32_t value = 1;
  uint64_t ticket = 0;
};

TEST(Worker, SaysThatTheJobIsGone) {
  Job job({.leaves = {2}});
  job.simulation.shard(0, 0).remove_job(7);
  Waiting alone(job);
  Worker& worker = alone.worker;
  ASSERT_TRUE(job.simulation.run_until([&] { return worker.health().trouble().has_value(); }));
  EXPECT_NE(worker.health().trouble()->what.find("the job has ended there"), std::string::npos)
      << worker.health().trouble()->what;
}

TEST(Worker, NoticesThatTheSwitchIsSilent) {
  Job job({.leaves = {2}});
  job.simulation.kill_switch();
  Waiting alone(job);
  Worker& worker = alone.worker;
  ASSERT_TRUE(job.simulation.run_until([&] { return worker.health().trouble().has_value(); },
                                       5'000'000'000));
  EXPECT_NE(worker.health().trouble()->what.find("the switch has not answered"), std::string::npos);
}

// It was late, or we were.
TEST(Worker, ASilenceThatEndsIsNoTroubleAnyMore) {
  Job job({.leaves = {2}});
  job.simulation.cut_rail(0, 0);
  Waiting alone(job);
  Worker& worker = alone.worker;
  ASSERT_TRUE(job.simulation.run_until([&] { return worker.health().trouble().has_value(); },
                                       5'000'000'000));
  job.simulation.mend_rails();
  EXPECT_TRUE(job.simulation.run_until([&] { return !worker.health().trouble(); }, 5'000'000'000));
}

// While a rank that others keep waiting is stopped, by a debugger, say, it hears nothing.
TEST(Worker, ItsOwnAbsenceIsNoSilenceOfTheSwitch) {
  Job job({.leaves = {2}});
  Waiting alone(job);
  Worker& worker = alone.worker;
  const auto wait = [&job](uint64_t ns) {
    const uint64_t until_ns = job.simulation.now_ns() + ns;
    job.simulation.run_until([&] { return job.simulation.now_ns() >= until_ns; });
  };
  for (const uint64_t absent_ns : {2'500'000'000, 20'000'000'000}) {
    wait(500'000'000);
    job.simulation.stop_worker(0);
    wait(absent_ns);
    job.simulation.resume_worker(0);
    EXPECT_FALSE(job.simulation.run_until([&] { return worker.health().trouble().has_value(); },
                                          5'000'000'000))
        << worker.health().trouble()->what;
  }
  job.simulation.kill_switch();
  EXPECT_TRUE(job.simulation.run_until([&] { return worker.health().trouble().has_value(); },
                                       5'000'000'000));
}

TEST(Worker, AStragglerIsNoTroubleWithTheSwitch) {
  Job job({.leaves = {2}});
  Waiting alone(job);
  Worker& worker = alone.worker;
  EXPECT_FALSE(job.simulation.run_until(
      [&] { return worker.health().trouble().has_value() || worker.status() != Status::kOk; },
      30'000'000'000));
}

// Words that cross the root. The root knows which leaf it waits for; that leaf knows which rank.
TEST(Worker, AStragglerBelowAnotherLeafIsNamedAndIsNoTrouble) {
  Job job({.leaves = {2, 2}, .shards = 2});
  auto buffers = job.inputs<int32_t>(100, any_int);
  uint64_t ticket;
  for (uint32_t rank : {0, 1, 2}) {
    ASSERT_EQ(job.simulation.worker(rank).start(
                  {.send = buffers[rank].data(), .receive = buffers[rank].data(), .count = 100},
                  job.simulation.now_ns(), &ticket),
              Status::kOk);
  }
  std::optional<std::string> far, near;
  ASSERT_TRUE(job.simulation.run_until(
      [&] {
        if (!far) far = job.simulation.worker(0).take_suspicion();
        if (!near) near = job.simulation.worker(2).take_suspicion();
        return far && near;
      },
      2'000'000'000));
  EXPECT_EQ(*far, "2, 3 (below the switch at 10.0.0.2:28900)");
  EXPECT_EQ(*near, "3");
  EXPECT_FALSE(job.simulation.run_until(
      [&] {
        for (uint32_t rank : {0, 1, 2}) {
          if (job.simulation.worker(rank).health().trouble()) return true;
        }
        return false;
      },
      30'000'000'000))
      << "the switches are there, and say so";
}

TEST(Worker, TheRootsRefusalReachesAllBelow) {
  Job job({.leaves = {2, 1}});
  job.simulation.shard(2, 0).remove_job(7);
  std::vector<int32_t> values(3, 1);
  uint64_t ticket;
  for (uint32_t rank : {0, 1, 2}) {
    Worker& worker = job.simulation.worker(rank);
    ASSERT_EQ(
        worker.start({.send = &values[rank], .receive = &values[rank], .count = 1}, 1, &ticket),
        Status::kOk);
  }
  for (uint32_t rank : {0, 1, 2}) {
    Worker& worker = job.simulation.worker(rank);
    ASSERT_TRUE(job.simulation.run_until([&] { return worker.health().trouble().has_value(); },
                                         1'000'000'000));
    EXPECT_NE(worker.health().trouble()->what.find("the job has ended there"), std::string::npos)
        << worker.health().trouble()->what;
  }
}

TEST(Worker, NoticesThatTheRootIsSilent) {
  Job job({.leaves = {1, 1}});
  job.simulation.kill_root();
  int32_t value = 1;
  uint64_t ticket;
  Worker& worker = job.simulation.worker(0);
  ASSERT_EQ(worker.start({.send = &value, .receive = &value, .count = 1}, 1, &ticket), Status::kOk);
  ASSERT_TRUE(job.simulation.run_until([&] { return worker.health().trouble().has_value(); },
                                       5'000'000'000));
  EXPECT_NE(worker.health().trouble()->what.find("the switch has not answered"), std::string::npos);
}

}  // namespace
}  // namespace slime
