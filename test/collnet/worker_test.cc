// Allreduce by workers and switches over a simulated network, every element checked at every rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "test/collnet/simulation/simulated_job.h"

namespace slime {
namespace {

using test::Job;
using test::pointers;

int32_t any_int(std::mt19937_64& random) { return static_cast<int32_t>(random()); }

void expect_exact_sum(Job& job, size_t count) {
  auto buffers = job.inputs<int32_t>(count, any_int);
  std::vector<int32_t> want(count);
  for (const auto& one : buffers) {
    for (size_t i = 0; i < count; ++i) {
      want[i] =
          static_cast<int32_t>(static_cast<uint32_t>(want[i]) + static_cast<uint32_t>(one[i]));
    }
  }
  ASSERT_TRUE(job.reduce(pointers(buffers), DataType::kInt32));
  for (const auto& one : buffers) ASSERT_EQ(one, want);
}

TEST(Worker, SumsIntegersExactly) {
  Job job({.leaves = {3}});
  for (size_t count : {0, 1, 7, 16, 17, 64, 65, 1000}) expect_exact_sum(job, count);
}

TEST(Worker, UsesAllShards) {
  Job job({.leaves = {2}, .slots = 5, .shards = 4});
  expect_exact_sum(job, 500);
}

TEST(Worker, IsAloneInItsJob) {
  Job job({.leaves = {1}, .slots = 1});
  expect_exact_sum(job, 100);
}

// The matrix: loss, duplication, reordering, workers, slots, and counts around every edge.
struct Weather {
  double loss, duplication;
  uint64_t jitter_ns;
};
class WorkerMatrix : public testing::TestWithParam<Weather> {};

TEST_P(WorkerMatrix, ExactInAnyWeather) {
  uint64_t seed = 1;
  for (uint32_t workers : {1, 2, 3, 8, 31, 32}) {
    for (uint32_t slots : {1, 2, 64}) {
      Job job({.leaves = {workers},
               .slots = slots,
               .lanes = 16,
               .network = {.seed = ++seed,
                           .loss = GetParam().loss,
                           .duplication = GetParam().duplication,
                           .jitter_ns = GetParam().jitter_ns}});
      const size_t ring = size_t{slots} * 16;
      for (size_t count :
           {size_t{1}, size_t{16}, size_t{17}, ring - 1, ring + 1, ring * 3 / 4 + 1}) {
        ASSERT_NO_FATAL_FAILURE(expect_exact_sum(job, count)) << "seed " << seed;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Weather, WorkerMatrix,
    testing::Values(Weather{0, 0, 0}, Weather{0.001, 0, 0}, Weather{0.01, 0.01, 100'000},
                    Weather{0.05, 0.1, 1'000'000}, Weather{0.2, 0.1, 10'000'000}),
    [](const auto& info) {
      return "Loss" + std::to_string(static_cast<int>(info.param.loss * 1000)) + "Permille";
    });

TEST(Worker, TwoLevels) {
  for (const std::vector<uint32_t>& leaves :
       {std::vector<uint32_t>{1, 1}, {2, 1}, {3, 4, 5}, {8, 8, 8, 8}}) {
    Job job({.leaves = leaves,
             .slots = 8,
             .shards = 2,
             .network = {.loss = 0.02, .duplication = 0.02, .jitter_ns = 200'000}});
    for (size_t count : {1, 300}) ASSERT_NO_FATAL_FAILURE(expect_exact_sum(job, count));
  }
}

// Log-uniform, so that neighbours differ by many powers of two.
float any_float(std::mt19937_64& random) {
  const double exponent = static_cast<double>(random() % 2000) / 100 - 10;
  return static_cast<float>((random() & 1 ? -1 : 1) * std::exp2(exponent));
}

void expect_close_and_equal(const std::vector<std::vector<float>>& inputs,
                            const std::vector<std::vector<float>>& results, uint32_t lanes) {
  const size_t count = inputs[0].size();
  if (count == 0) return;
  for (const auto& one : results) {
    ASSERT_EQ(std::memcmp(one.data(), results[0].data(), count * sizeof(float)), 0);
  }
  const double workers = static_cast<double>(inputs.size());
  for (size_t i = 0; i < count; ++i) {
    double sum = 0, largest = 0;
    const size_t first = i / lanes * lanes;  // the whole packet: at least the block
    for (const auto& one : inputs) {
      sum += one[i];
      for (size_t j = first; j < std::min(count, first + lanes); ++j) {
        if (std::isfinite(one[j])) largest = std::max(largest, std::fabs(double{one[j]}));
      }
    }
    if (!std::isfinite(sum)) {
      ASSERT_EQ(std::isnan(results[0][i]), std::isnan(sum)) << i;
      if (!std::isnan(sum)) {
        ASSERT_EQ(results[0][i], sum) << i;
      }
      continue;
    }
    const double bound =
        workers * workers * 2 * std::ldexp(2 * largest, -32) + std::fabs(sum) * std::ldexp(1, -24);
    ASSERT_NEAR(results[0][i], sum, bound) << i;
  }
}

TEST(Worker, SumsFloats) {
  Job job({.leaves = {3}, .network = {.loss = 0.02, .duplication = 0.02, .jitter_ns = 100'000}});
  for (size_t count : {1, 15, 16, 17, 64, 500}) {
    const auto inputs = job.inputs<float>(count, any_float);
    auto buffers = inputs;
    ASSERT_TRUE(job.reduce(pointers(buffers), DataType::kFloat32));
    ASSERT_NO_FATAL_FAILURE(expect_close_and_equal(inputs, buffers, 16));
  }
}

TEST(Worker, PutsNanAndInfinityWhereIeeeDoes) {
  Job job({.leaves = {3}, .network = {.loss = 0.05, .jitter_ns = 100'000}});
  auto inputs = job.inputs<float>(200, any_float);
  const float infinity = std::numeric_limits<float>::infinity();
  inputs[0][3] = std::nanf("");
  inputs[1][20] = infinity;
  inputs[2][21] = -infinity;
  inputs[0][22] = infinity;
  inputs[1][22] = -infinity;
  inputs[0][23] = inputs[2][23] = -infinity;
  inputs[2][199] = std::nanf("");
  auto buffers = inputs;
  ASSERT_TRUE(job.reduce(pointers(buffers), DataType::kFloat32));
  expect_close_and_equal(inputs, buffers, 16);
  EXPECT_EQ(job.simulation.worker(0).counters().flag_rounds, 3u);
}

// NCCL's chunks end in what an earlier operation left there, of any size.
TEST(Worker, KeepsSmallNumbersBeforeLargeOnes) {
  Job job({.leaves = {3}, .lanes = 64, .network = {.loss = 0.02, .jitter_ns = 100'000}});
  for (const size_t users : {1, 2, 5, 31, 33, 40}) {
    auto inputs = job.inputs<float>(200, any_float);
    for (uint32_t rank = 0; rank < 3; ++rank) {
      for (size_t i = users; i < 200; ++i) inputs[rank][i] = rank == 1 ? 3e38F : 1e-30F;
    }
    if (users % 2) inputs[0][0] = 0;
    auto buffers = inputs;
    ASSERT_TRUE(job.reduce(pointers(buffers), DataType::kFloat32));
    for (size_t i = 0; i < users; ++i) {
      double sum = 0, largest = 0;
      for (const auto& one : inputs) {
        sum += one[i];
        largest = std::max(largest, std::fabs(double{one[i]}));
      }
      for (const auto& one : buffers) {
        ASSERT_NEAR(one[i], sum, largest * 9 * std::ldexp(1, -29) + std::fabs(sum) * 6e-8)
            << users << " users, element " << i;
      }
    }
    for (const auto& one : buffers) {
      ASSERT_TRUE(
          std::ranges::equal(std::as_bytes(std::span(one)), std::as_bytes(std::span(buffers[0]))));
    }
  }
  EXPECT_GT(job.simulation.worker(0).counters().fine_rounds, 0u);
}

TEST(Worker, OverlapsOperations) {
  Job job({.leaves = {2}, .slots = 4, .network = {.loss = 0.02, .jitter_ns = 100'000}});
  constexpr size_t kOperations = 30;
  std::vector<std::vector<std::vector<float>>> inputs, buffers;
  std::vector<std::vector<uint64_t>> tickets(2, std::vector<uint64_t>(kOperations));
  for (size_t i = 0; i < kOperations; ++i) inputs.push_back(job.inputs<float>(i * 7, any_float));
  buffers = inputs;
  // The ranks do not know of the operations at the same time.
  for (size_t i = 0; i < kOperations; ++i) {
    for (uint32_t rank : {0, 1}) {
      auto& buffer = buffers[i][rank];
      ASSERT_EQ(job.simulation.worker(rank).start({.send = buffer.data(),
                                                   .receive = buffer.data(),
                                                   .count = buffer.size(),
                                                   .type = DataType::kFloat32},
                                                  job.simulation.now_ns(), &tickets[rank][i]),
                Status::kOk);
      const uint64_t until = job.simulation.now_ns() + job.random() % 300'000;
      job.simulation.run_until([&] { return job.simulation.now_ns() >= until; });
    }
  }
  ASSERT_TRUE(job.simulation.run_until([&] {
    return job.simulation.worker(0).done(tickets[0].back()) &&
           job.simulation.worker(1).done(tickets[1].back());
  }));
  for (size_t i = 0; i < kOperations; ++i) {
    for (uint32_t rank : {0, 1}) EXPECT_TRUE(job.simulation.worker(rank).done(tickets[rank][i]));
    ASSERT_NO_FATAL_FAILURE(expect_close_and_equal(inputs[i], buffers[i], 16));
  }
}

TEST(Worker, OneRoundPerPacketWhereNextOperationsAreKnown) {
  Job job({.leaves = {2}, .slots = 4, .lanes = 16});
  auto inputs = job.inputs<float>(16 * 400, any_float);
  ASSERT_TRUE(job.reduce(pointers(inputs), DataType::kFloat32));
  EXPECT_EQ(job.simulation.worker(0).counters().exponent_rounds, 4u) << "one per slot";
}

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

// Minimum and maximum have copies that agree, and checks that are salts alone: only the shape in
// the cookie tells a worker that another one has called something else.
TEST(Worker, AcceptsNothingWhereRanksCallDifferentCollectives) {
  Job job({.leaves = {2}, .op_of_switches = sap::Op::kMax});
  auto buffers = job.inputs<int32_t>(8, any_int);
  const auto before = buffers;
  for (uint32_t rank : {0, 1}) {
    uint64_t ticket;
    const Operation operation{.send = buffers[rank].data(),
                              .receive = buffers[rank].data(),
                              .count = buffers[rank].size(),
                              .type = DataType::kInt32,
                              .op = rank == 0 ? ReduceOp::kMax : ReduceOp::kMin};
    ASSERT_EQ(job.simulation.worker(rank).start(operation, job.simulation.now_ns(), &ticket),
              Status::kOk);
  }
  const auto is_damaged = [&](uint32_t rank) {
    return job.simulation.worker(rank).counters().corrupt > 0;
  };
  EXPECT_TRUE(job.simulation.run_until([&] { return is_damaged(0) && is_damaged(1); }));
  EXPECT_EQ(buffers, before);
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

// Floats of one magnitude, and what else a small operation may bring after some of these.
float any_of_one_magnitude(std::mt19937_64& random) {
  return static_cast<float>(1 + static_cast<double>(random() % 1000) / 1000);
}

TEST(Worker, OneRoundForSmallOperationsWhoseExponentsStay) {
  Job job({.leaves = {2}, .slots = 1, .lanes = 16});
  for (int operation = 0; operation < 10; ++operation) {
    const auto inputs = job.inputs<float>(16, any_of_one_magnitude);
    auto buffers = inputs;
    ASSERT_TRUE(job.reduce(pointers(buffers), DataType::kFloat32));
    ASSERT_NO_FATAL_FAILURE(expect_close_and_equal(inputs, buffers, 16));
  }
  const WorkerCounters& counters = job.simulation.worker(0).counters();
  EXPECT_EQ(counters.exponent_rounds, 2u) << "what was the same twice is taken for granted";
  EXPECT_EQ(counters.guess_rounds, 8u);
  EXPECT_EQ(counters.wrong_guesses, 0u);
  EXPECT_EQ(counters.results, 12u);
}

// A loss or the norm of gradients, added up once a step: numbers that change by a few percent. What
// guesses save is in stages.h.
TEST(Worker, GuessesSaveASmallOperationMostOfARoundTrip) {
  uint64_t ns[2], sent[2];
  for (const bool guesses : {false, true}) {
    Job job({.leaves = {4}, .slots = 4, .lanes = 256, .guesses = guesses});
    constexpr uint32_t kOperations = 400;
    for (uint32_t operation = 0; operation < kOperations; ++operation) {
      const double norm =
          3 + 2 * std::sin(operation / 50.0);  // crosses a power of two now and then
      auto buffers = job.inputs<float>(4, any_of_one_magnitude);
      for (auto& one : buffers) {
        for (float& value : one) value = static_cast<float>(norm * (0.85 + value / 10));
      }
      ASSERT_TRUE(job.reduce(pointers(buffers), DataType::kFloat32));
    }
    const WorkerCounters& counters = job.simulation.worker(0).counters();
    ns[guesses] = job.simulation.now_ns() / kOperations;
    sent[guesses] = counters.sent;
    RecordProperty(guesses ? "ns_with_guesses" : "ns_without", std::to_string(ns[guesses]));
    RecordProperty(guesses ? "sent_with_guesses" : "sent_without", std::to_string(sent[guesses]));
  }
  EXPECT_LT(ns[true] * 10, ns[false] * 7);
  EXPECT_LT(sent[true] * 10, sent[false] * 7);
}

TEST(Worker, NothingIsGuessedWhereNumbersAreNotFinite) {
  Job job({.leaves = {2}, .slots = 1, .lanes = 16});
  for (int operation = 0; operation < 10; ++operation) {
    auto buffers = job.inputs<float>(16, any_of_one_magnitude);
    buffers[1][4] = std::numeric_limits<float>::infinity();
    ASSERT_TRUE(job.reduce(pointers(buffers), DataType::kFloat32));
  }
  EXPECT_EQ(job.simulation.worker(0).counters().guess_rounds, 0u);
}

TEST(Worker, LargeOperationsGuessNothing) {
  Job job({.leaves = {2}, .slots = 2, .lanes = 16});
  for (int operation = 0; operation < 10; ++operation) {
    auto buffers = job.inputs<float>(16 * 5, any_of_one_magnitude);
    ASSERT_TRUE(job.reduce(pointers(buffers), DataType::kFloat32));
  }
  EXPECT_EQ(job.simulation.worker(0).counters().guess_rounds, 0u);
}

// The same bits as without a history to guess from.
TEST(Worker, WrongGuessesCostARoundAndNothingElse) {
  using Inputs = std::vector<std::vector<float>>;
  struct Surprise {
    const char* name;
    uint32_t wrong;  // guesses
    void (*make)(Inputs&);
  };
  const std::vector<Surprise> surprises = {
      {"none", 0, [](Inputs&) {}},
      {"larger", 1, [](Inputs& inputs) { inputs[1][3] = 1e30F; }},
      {"a little larger", 1, [](Inputs& inputs) { inputs[2][15] = 2; }},
      {"smaller", 1,
       [](Inputs& inputs) {
         for (auto& one : inputs) {
           for (float& value : one) value *= 1e-20F;
         }
       }},
      {"smaller in one block", 1,
       [](Inputs& inputs) {
         for (auto& one : inputs) std::fill_n(one.begin(), 8, 0.25F);
       }},
      {"zeros", 1, [](Inputs& inputs) { inputs.assign(3, std::vector<float>(16)); }},
      {"NaN", 1, [](Inputs& inputs) { inputs[0][7] = std::nanf(""); }},
      {"infinity", 1,
       [](Inputs& inputs) { inputs[2][0] = std::numeric_limits<float>::infinity(); }},
      {"small numbers before large ones", 0,
       [](Inputs& inputs) {
         for (auto& one : inputs) std::fill_n(one.begin(), 3, 1e-12F);
       }},
  };
  for (const auto& [name, wrong, surprise] : surprises) {
    SCOPED_TRACE(name);
    Job job({.leaves = {2, 1},
             .slots = 1,
             .lanes = 16,
             .network = {.loss = 0.1, .duplication = 0.1, .jitter_ns = 300'000}});
    Job fresh({.leaves = {3}, .slots = 1, .lanes = 16});
    for (int operation = 0; operation < 5; ++operation) {
      auto buffers = job.inputs<float>(16, any_of_one_magnitude);
      ASSERT_TRUE(job.reduce(pointers(buffers), DataType::kFloat32));
    }
    auto inputs = job.inputs<float>(16, any_of_one_magnitude);
    surprise(inputs);
    auto buffers = inputs, by_fresh = inputs;
    ASSERT_TRUE(job.reduce(pointers(buffers), DataType::kFloat32));
    ASSERT_TRUE(fresh.reduce(pointers(by_fresh), DataType::kFloat32));
    for (const auto& one : buffers) {
      EXPECT_EQ(std::memcmp(one.data(), by_fresh[0].data(), 16 * sizeof(float)), 0);
    }
    const WorkerCounters& counters = job.simulation.worker(0).counters();
    EXPECT_EQ(counters.guess_rounds, 4u);
    EXPECT_EQ(counters.wrong_guesses, wrong);
  }
}

// The switch dies at any moment of a run in any weather, and perhaps another takes its place; the
// sums are those it would have made.
enum class Fate { kStays, kGoes, kGoesAndReturns };
void expect_same_bits(uint64_t seed, const std::vector<uint32_t>& leaves,
                      const std::vector<Fate>& fates) {
  std::vector<float> by_switch;
  for (const Fate fate : fates) {
    Job job({.leaves = leaves,
             .slots = 8,
             .network = {.seed = seed, .loss = 0.05, .duplication = 0.02, .jitter_ns = 300'000}});
    auto inputs = job.inputs<float>(3000, any_float);
    inputs[1][700] = std::numeric_limits<float>::infinity();
    auto buffers = inputs;
    std::vector<uint64_t> tickets(3);
    for (uint32_t rank = 0; rank < 3; ++rank) {
      ASSERT_EQ(job.simulation.worker(rank).start({.send = buffers[rank].data(),
                                                   .receive = buffers[rank].data(),
                                                   .count = 3000,
                                                   .type = DataType::kFloat32},
                                                  1, &tickets[rank]),
                Status::kOk);
    }
    const uint64_t moment_ns = 1'000'000 + seed * 350'000;
    const auto wait_until = [&](uint64_t at_ns) {
      ASSERT_TRUE(job.simulation.run_until([&] { return job.simulation.now_ns() >= at_ns; }));
    };
    if (fate != Fate::kStays) {
      wait_until(2 * moment_ns);
      job.simulation.kill_switch();
      job.simulation.move_to_ranks(4);
    }
    if (fate == Fate::kGoesAndReturns) {
      wait_until(3 * moment_ns);
      job.simulation.move_to_switch(9, 200);
    }
    ASSERT_TRUE(job.simulation.run_until([&] {
      bool all = true;
      for (uint32_t rank = 0; rank < 3; ++rank)
        all &= job.simulation.worker(rank).done(tickets[rank]);
      return all;
    })) << "seed "
        << seed;
    if (fate == Fate::kStays) by_switch = buffers[0];
    for (const auto& one : buffers) {
      ASSERT_EQ(std::memcmp(one.data(), by_switch.data(), one.size() * sizeof(float)), 0);
    }
    if (fate == Fate::kStays) expect_close_and_equal(inputs, buffers, 16);
  }
}

class WorkerMove : public testing::TestWithParam<int> {};

TEST_P(WorkerMove, GoesOnWithoutTheSwitchAndBackOnItToTheSameBits) {
  expect_same_bits(static_cast<uint64_t>(GetParam()), {3},
                   {Fate::kStays, Fate::kGoes, Fate::kGoesAndReturns});
}

// At its leaf a worker is another child than among the ranks.
TEST_P(WorkerMove, GoesOnWithoutTheTreeToTheSameBits) {
  expect_same_bits(static_cast<uint64_t>(GetParam()), {1, 2}, {Fate::kStays, Fate::kGoes});
}

INSTANTIATE_TEST_SUITE_P(Seeds, WorkerMove, testing::Range(1, 60));

// Longer than the first time-out: that is measured, not worked around for ever.
TEST(Worker, LearnsLongRoundTrips) {
  Job job({.leaves = {2}, .network = {.latency_ns = 40'000'000}});
  ASSERT_NO_FATAL_FAILURE(expect_exact_sum(job, 16 * 400));
  const WorkerCounters& counters = job.simulation.worker(0).counters();
  EXPECT_LT(counters.retransmitted, counters.results / 10);
  EXPECT_NEAR(static_cast<double>(job.simulation.worker(0).round_trip_ns()), 80e6, 5e6);
}

TEST(Worker, FindsDamagedSumsAndAsksAgain) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Job job({.leaves = {3}, .network = {.seed = seed, .damage = 0.2}});
    ASSERT_NO_FATAL_FAILURE(expect_exact_sum(job, 1000)) << "seed " << seed;
    uint64_t found = 0;
    for (uint32_t rank = 0; rank < 3; ++rank)
      found += job.simulation.worker(rank).counters().corrupt;
    EXPECT_GT(found, 0u);
  }
}

// Numbers that need rounds of flags and of fine exponents.
std::vector<std::vector<float>> sums_of_specials(const NetworkOptions& network, uint64_t* found) {
  Job job({.leaves = {3}, .lanes = 64, .network = network});
  std::vector<float> numbers(500);
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = (i % 64 < 5 ? 1e-20F : 1e20F) * static_cast<float>(i + 1);
    if (i % 50 == 7) numbers[i] = std::nanf("");
    if (i % 50 == 9) numbers[i] = -std::numeric_limits<float>::infinity();
  }
  std::vector<std::vector<float>> buffers(3, numbers);
  EXPECT_TRUE(job.reduce(pointers(buffers), DataType::kFloat32));
  EXPECT_GT(job.simulation.worker(0).counters().flag_rounds, 0u);
  EXPECT_GT(job.simulation.worker(0).counters().fine_rounds, 0u);
  *found = 0;
  for (uint32_t rank : {0, 1, 2}) *found += job.simulation.worker(rank).counters().corrupt;
  return buffers;
}

// Rounds by OR and by maximum.
TEST(Worker, FindsDamagedFlagsAndExponentsAndAsksAgain) {
  uint64_t found = 0;
  const auto want = sums_of_specials({}, &found);
  ASSERT_EQ(found, 0u);
  for (const sap::Op op : {sap::Op::kOr, sap::Op::kMax}) {
    uint64_t found_in_all = 0;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const auto sums = sums_of_specials({.seed = seed, .damage = 0.3, .damaged_op = op}, &found);
      found_in_all += found;
      for (uint32_t rank : {0, 1, 2}) {
        ASSERT_TRUE(std::ranges::equal(std::as_bytes(std::span(sums[rank])),
                                       std::as_bytes(std::span(want[rank]))))
            << "seed " << seed << ", rank " << rank;
      }
    }
    EXPECT_GT(found_in_all, 20u) << static_cast<int>(op);
  }
}

// A switch whose memory has a fault gives the same wrong sum again and again: like one that is
// gone.
TEST(Worker, GoesOnWithoutASwitchThatCannotAdd) {
  Job job({.leaves = {2}, .network = {.damage = 1}});
  std::vector<int32_t> buffers[2] = {std::vector<int32_t>(500, 3), std::vector<int32_t>(500, 4)};
  uint64_t tickets[2];
  for (uint32_t rank = 0; rank < 2; ++rank) {
    int32_t* const data = buffers[rank].data();
    ASSERT_EQ(job.simulation.worker(rank).start({.send = data, .receive = data, .count = 500}, 1,
                                                &tickets[rank]),
              Status::kOk);
  }
  Worker& first = job.simulation.worker(0);
  ASSERT_TRUE(job.simulation.run_until([&] { return first.health().trouble().has_value(); }));
  EXPECT_NE(first.health().trouble()->what.find("likely in memory"), std::string::npos);
  EXPECT_FALSE(first.done(tickets[0]));
  job.simulation.repair();
  job.simulation.move_to_ranks(4);
  ASSERT_TRUE(job.simulation.run_until(
      [&] { return first.done(tickets[0]) && job.simulation.worker(1).done(tickets[1]); }));
  for (const auto& one : buffers) EXPECT_EQ(one, std::vector<int32_t>(500, 7));
}

// The sums would be of numbers that were scaled differently. Nobody takes one.
TEST(Worker, NothingIsAcceptedWhereExponentsDiffer) {
  Job job({.leaves = {2}, .slots = 1, .network = {.raised_exponents = 1}});
  std::vector<float> buffers[2] = {std::vector<float>(64, 3), std::vector<float>(64, 4)};
  uint64_t tickets[2];
  Worker* const workers[2] = {&job.simulation.worker(0), &job.simulation.worker(1)};
  for (uint32_t rank = 0; rank < 2; ++rank) {
    float* const data = buffers[rank].data();
    const Operation operation{
        .send = data, .receive = data, .count = 64, .type = DataType::kFloat32};
    ASSERT_EQ(workers[rank]->start(operation, 1, &tickets[rank]), Status::kOk);
  }
  ASSERT_TRUE(job.simulation.run_until(
      [&] { return workers[0]->health().trouble() && workers[1]->health().trouble(); }));
  EXPECT_EQ(buffers[0], std::vector<float>(64, 3));
  EXPECT_EQ(buffers[1], std::vector<float>(64, 4));
  // Where the job goes on, they agree on exponents again.
  job.simulation.repair();
  job.simulation.move_to_ranks(4);
  ASSERT_TRUE(job.simulation.run_until(
      [&] { return workers[0]->done(tickets[0]) && workers[1]->done(tickets[1]); }));
  for (const auto& one : buffers) EXPECT_EQ(one, std::vector<float>(64, 7));
}

// In the middle of a stream, where some ranks are a round ahead: now and then one rank hears of
// other exponents than the rest, and all move, between ranks and switch in turn.
TEST(Worker, ExponentsAreAgreedOnAgainWhereverTheJobGoesOn) {
  uint64_t moves_in_all = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Simulation::Options options{
        .leaves = {3}, .slots = 8, .network = {.seed = seed, .loss = 0.02, .jitter_ns = 300'000}};
    Job clean(options);
    Simulation::Options damaged = options;
    damaged.network.raised_exponents = 0.01;
    Job job(damaged);
    const auto inputs = clean.inputs<float>(3000, any_float);
    auto want = inputs, buffers = inputs;
    ASSERT_TRUE(clean.reduce(pointers(want), DataType::kFloat32));
    std::vector<uint64_t> tickets(3);
    for (uint32_t rank = 0; rank < 3; ++rank) {
      float* const data = buffers[rank].data();
      const Operation operation{
          .send = data, .receive = data, .count = 3000, .type = DataType::kFloat32};
      ASSERT_EQ(job.simulation.worker(rank).start(operation, 1, &tickets[rank]), Status::kOk);
    }
    uint8_t generation = 3;
    for (bool done = false; !done;) {
      ASSERT_TRUE(job.simulation.run_until([&] {
        done = true;
        bool trouble = false;
        for (uint32_t rank = 0; rank < 3; ++rank) {
          done &= job.simulation.worker(rank).done(tickets[rank]);
          trouble |= job.simulation.worker(rank).health().trouble().has_value();
        }
        return done || trouble;
      })) << "seed "
          << seed;
      if (done) break;
      ++moves_in_all;
      if (++generation % 2 == 0) {
        job.simulation.move_to_ranks(generation);
      } else {
        job.simulation.move_to_switch(9, generation);
      }
    }
    for (const auto& one : buffers) {
      ASSERT_EQ(std::memcmp(one.data(), want[0].data(), one.size() * sizeof(float)), 0)
          << "seed " << seed;
    }
  }
  EXPECT_GT(moves_in_all, 20u);
}

struct Sent final : Datagrams {
  void send(const Destination&, std::span<const std::byte> datagram) override {
    last.assign(datagram.begin(), datagram.end());
  }
  std::vector<std::byte> last;
};

// The copies of a maximum agree whoever is missing; its check tells how many were reduced.
TEST(Worker, AMaximumOfFewerOrMoreContributionsIsNotTaken) {
  Sent sent;
  auto worker = Worker::open({.contributors = 3, .slots = 1, .lanes = 16, .round_trip = {}}, sent);
  ASSERT_TRUE(worker);
  int32_t value = 5;
  uint64_t ticket = 0;
  const Operation operation{.send = &value, .receive = &value, .count = 1, .op = ReduceOp::kMax};
  ASSERT_EQ((*worker)->start(operation, 1, &ticket), Status::kOk);
  sap::Header header;
  ASSERT_EQ(sap::decode(sent.last, &header), sap::Fault::kNone);
  header.type = sap::Type::kResult;
  for (const uint32_t contributions : {1, 2, 4, 3}) {
    EXPECT_FALSE((*worker)->done(ticket)) << contributions;
    header.check = contributions * sap::salt(header);
    sap::encode(header, sent.last.data());
    const std::vector<std::byte> result = sent.last;
    deliver(**worker, result, 2);
  }
  EXPECT_TRUE((*worker)->done(ticket));
  EXPECT_EQ((*worker)->counters().corrupt, 3u);
}

// Forged packets beside a job: nothing wrong, nothing stuck. The simulation drops contributions to
// workers by itself; all other forged packets are counted.
TEST(Worker, WrongTokensChangeNothing) {
  Job job({.leaves = {4}, .slots = 8, .lanes = 64, .shards = 2, .network = {.loss = 0.01}});
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr uint64_t kForged = 50'000;
#else
  constexpr uint64_t kForged = 1'000'000;
#endif
  constexpr size_t kCount = 20'000;
  uint64_t forged = 0, rounds = 0;
  while (forged < kForged) {
    auto buffers = job.inputs<int32_t>(kCount, any_int);
    std::vector<uint32_t> want(kCount);
    for (const auto& one : buffers) {
      for (size_t i = 0; i < kCount; ++i) want[i] += static_cast<uint32_t>(one[i]);
    }
    std::vector<uint64_t> tickets(4);
    for (uint32_t rank = 0; rank < 4; ++rank) {
      int32_t* const data = buffers[rank].data();
      ASSERT_EQ(job.simulation.worker(rank).start({.send = data, .receive = data, .count = kCount},
                                                  job.simulation.now_ns(), &tickets[rank]),
                Status::kOk);
    }
    ASSERT_TRUE(job.simulation.run_until([&] {
      for (int i = 0; i < 50 && forged < kForged; ++i, ++forged) job.simulation.forge(job.random);
      for (uint32_t rank = 0; rank < 4; ++rank) {
        if (!job.simulation.worker(rank).done(tickets[rank])) return false;
      }
      return true;
    })) << "wedged";
    for (const auto& one : buffers) {
      for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(static_cast<uint32_t>(one[i]), want[i]);
    }
    ++rounds;
  }
  uint64_t counted = 0;
  for (uint32_t rank = 0; rank < 4; ++rank) {
    const Worker& worker = job.simulation.worker(rank);
    EXPECT_FALSE(worker.health().trouble());
    EXPECT_EQ(worker.counters().corrupt, 0u);
    counted += worker.counters().wrong_token;
  }
  for (uint32_t shard : {0, 1}) {
    counted += job.simulation.shard(0, shard).counters_of(7)->wrong_token.get();
    counted += job.simulation.shard(0, shard).counters().unexpected.get();
  }
  EXPECT_GT(counted, kForged * 8 / 10) << rounds << " operations";
}

TEST(Worker, RefusesWhatCannotBeQuantised) {
  Job job({.leaves = {1}});
  float value = 1;
  uint64_t ticket;
  EXPECT_EQ(job.simulation.worker(0).start({.send = &value,
                                            .receive = &value,
                                            .count = 1,
                                            .type = DataType::kFloat32,
                                            .op = ReduceOp::kMin},
                                           1, &ticket),
            Status::kUnsupported);
}

TEST(Worker, MinAndMaxOfIntegers) {
  Job job({.leaves = {3}});
  for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
    const auto inputs = job.inputs<int32_t>(50, any_int);
    auto buffers = inputs;
    ASSERT_TRUE(job.reduce(pointers(buffers), DataType::kInt32, op));
    for (size_t i = 0; i < 50; ++i) {
      const auto all = {inputs[0][i], inputs[1][i], inputs[2][i]};
      EXPECT_EQ(buffers[0][i], op == ReduceOp::kMin ? std::min(all) : std::max(all));
    }
  }
}

}  // namespace
}  // namespace slime
