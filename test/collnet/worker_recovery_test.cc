// A job goes on among its ranks, or at a switch again, and its sums stay the same.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>
#include <memory>

#include "test/collnet/simulation/sums.h"

namespace slime {
namespace {

using test::any_float;
using test::expect_close_and_equal;
using test::Job;
using test::pointers;

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

// As by the destructor of a communicator, in the middle of a move (a sanitizer sees the read).
TEST(Worker, TouchesNoBufferAfterItIsAbandoned) {
  Job job({.leaves = {2}, .slots = 8});
  Worker& worker = job.simulation.worker(0);
  auto buffer = std::make_unique<std::array<int32_t, 1000>>();
  uint64_t ticket = 0;
  ASSERT_EQ(worker.start({.send = buffer.get(), .receive = buffer.get(), .count = buffer->size()},
                         1, &ticket),
            Status::kOk);
  worker.abandon();
  buffer.reset();
  const uint64_t sent = worker.counters().sent;
  job.simulation.move_to_ranks(4);
  const uint64_t end_ns = job.simulation.now_ns() + 100'000'000;
  ASSERT_TRUE(job.simulation.run_until([&] { return job.simulation.now_ns() >= end_ns; }));
  EXPECT_EQ(worker.counters().sent, sent);
}

}  // namespace
}  // namespace slime
