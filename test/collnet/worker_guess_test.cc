// Small operations: a worker guesses their exponents from those of the operations before.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "test/collnet/simulation/sums.h"

namespace slime {
namespace {

using test::expect_close_and_equal;
using test::Job;
using test::pointers;

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

}  // namespace
}  // namespace slime
