// Allreduce by workers and switches over a simulated network, every element checked at every rank.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "test/collnet/simulation/sums.h"

namespace slime {
namespace {

using test::any_float;
using test::any_int;
using test::expect_close_and_equal;
using test::expect_exact_sum;
using test::Job;
using test::pointers;

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

// Longer than the first time-out: that is measured, not worked around for ever.
TEST(Worker, LearnsLongRoundTrips) {
  Job job({.leaves = {2}, .network = {.latency_ns = 40'000'000}});
  ASSERT_NO_FATAL_FAILURE(expect_exact_sum(job, 16 * 400));
  const WorkerCounters& counters = job.simulation.worker(0).counters();
  EXPECT_LT(counters.retransmitted, counters.results / 10);
  EXPECT_NEAR(static_cast<double>(job.simulation.worker(0).round_trip_ns()), 80e6, 5e6);
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
