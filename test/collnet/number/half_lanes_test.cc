// Float16 and bfloat16 in 16-bit lanes, through workers and switches.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "test/collnet/number/support.h"
#include "test/collnet/simulation/simulated_job.h"

namespace slime {
namespace {

using number::HalfBits;
using test::Job;
using test::pointers;
namespace by_the_book = number::test;

constexpr uint32_t kLanes = 64;  // blocks of 64 elements

using Halves = std::vector<std::vector<uint16_t>>;  // by rank

double value(DataType type, uint16_t bits) { return by_the_book::value_of(type, bits); }

uint16_t bits_of(DataType type, double value) {
  const by_the_book::FloatFormat format = by_the_book::float_format(type);
  const double rounded = by_the_book::rounded(type, std::fabs(value));
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  if (rounded == 0) return sign;
  const int exponent = std::max(std::ilogb(rounded), format.least_exponent());
  const auto digits = static_cast<uint32_t>(std::ldexp(rounded, format.fraction_bits - exponent));
  const auto field = static_cast<uint32_t>(exponent + format.bias() - 1) << format.fraction_bits;
  return static_cast<uint16_t>(sign | (field + digits));
}

Halves inputs_of(Job& job, DataType type, size_t count, auto draw) {
  Halves all(job.simulation.workers(), std::vector<uint16_t>(count));
  for (auto& one : all) {
    for (uint16_t& bits : one) bits = bits_of(type, draw(job.random));
  }
  return all;
}
double normal(std::mt19937_64& random) { return std::normal_distribution<>()(random); }

double sum_at(DataType type, const Halves& inputs, size_t i) {
  double sum = 0;
  for (const auto& one : inputs) sum += value(type, one[i]);
  return sum;
}
// 2^floor(log2 |v|) of the greatest there is in [first, end).
double power_of_greatest(DataType type, const Halves& inputs, size_t first, size_t end) {
  double greatest = 0;
  for (const auto& one : inputs) {
    for (size_t i = first; i < std::min(end, one.size()); ++i) {
      if (std::isfinite(value(type, one[i]))) {
        greatest = std::max(greatest, std::fabs(value(type, one[i])));
      }
    }
  }
  return greatest == 0 ? 0 : std::exp2(std::ilogb(greatest));
}

// The bound of number.h; packets are as large as can be.
double lanes_error(DataType type, const Halves& inputs, size_t i) {
  const auto n = static_cast<uint32_t>(inputs.size());
  const size_t packet = i / (2 * kLanes) * 2 * kLanes;  // both its blocks: at least i's
  const double power = power_of_greatest(type, inputs, packet, packet + 2 * kLanes);
  return power * n * std::ldexp(1, by_the_book::log2_ceil(n) - 15);
}

void expect_close(DataType type, const Halves& inputs, const Halves& results) {
  for (const auto& one : results) ASSERT_EQ(one, results[0]) << "ranks differ";
  for (size_t i = 0; i < inputs[0].size(); ++i) {
    const double sum = sum_at(type, inputs, i), result = value(type, results[0][i]);
    if (!std::isfinite(sum)) {
      ASSERT_EQ(std::isnan(result), std::isnan(sum)) << i;
      if (!std::isnan(sum)) {
        ASSERT_EQ(result, sum) << i;
      }
      continue;
    }
    const double error = lanes_error(type, inputs, i);
    ASSERT_NEAR(result, sum, error + by_the_book::ulp(type, std::fabs(sum) + error) / 2) << i;
  }
}

struct Case {
  DataType type;
  uint32_t workers;
};
std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const DataType type : {DataType::kBfloat16, DataType::kFloat16}) {
    for (const uint32_t workers : {1u, 2u, 3u, 4u, 8u, 31u, 32u}) cases.push_back({type, workers});
  }
  return cases;
}
class HalfLanes : public testing::TestWithParam<Case> {
 protected:
  const DataType type_ = GetParam().type;
  Job job_{{.leaves = {GetParam().workers},
            .lanes = kLanes,
            .half_bits = HalfBits::k16,
            .network = {.loss = 0.02, .duplication = 0.02, .jitter_ns = 100'000}}};
};

TEST_P(HalfLanes, SumsMeetTheBound) {
  for (const size_t count : {0, 1, 63, 64, 65, 127, 128, 129, 1000}) {
    const Halves inputs = inputs_of(job_, type_, count, normal);
    Halves buffers = inputs;
    ASSERT_TRUE(job_.reduce(pointers(buffers), type_));
    ASSERT_NO_FATAL_FAILURE(expect_close(type_, inputs, buffers)) << count;
  }
}

// All bits there are: denormals, NaN, infinities, the greatest numbers.
TEST_P(HalfLanes, AnyBitsMeetTheBound) {
  Halves inputs(job_.simulation.workers(), std::vector<uint16_t>(700));
  for (auto& one : inputs) {
    for (uint16_t& bits : one) bits = static_cast<uint16_t>(job_.random());
  }
  // The sum of the greatest would be infinite; that is for the oracle.
  const auto greatest = bits_of(type_, by_the_book::greatest(type_) / 64);
  for (auto& one : inputs) {
    for (uint16_t& bits : one) {
      const uint16_t magnitude = bits & 0x7fff;
      const bool finite = std::isfinite(value(type_, bits));
      if (finite && magnitude > greatest) bits = static_cast<uint16_t>((bits & 0x8000) | greatest);
    }
  }
  Halves buffers = inputs;
  ASSERT_TRUE(job_.reduce(pointers(buffers), type_));
  expect_close(type_, inputs, buffers);
}

// NCCL's chunks end in what an earlier operation left there, of any size. What comes first is still
// at most n * 2^(c - 2) of its own half ulps off.
TEST_P(HalfLanes, KeepSmallNumbersBeforeLargeOnes) {
  const auto n = job_.simulation.workers();
  const double p = significand_bits(type_);
  for (const size_t users : {1, 2, 5, 31, 65, 100}) {
    for (const int above : {3, 6, 9, 13}) {
      Halves inputs = inputs_of(job_, type_, 200, normal);
      for (auto& one : inputs) {
        for (size_t i = users; i < 200; ++i) one[i] = bits_of(type_, std::exp2(above));
      }
      if (users % 2) inputs[0][0] = 0;
      Halves buffers = inputs;
      ASSERT_TRUE(job_.reduce(pointers(buffers), type_));
      for (const auto& one : buffers) ASSERT_EQ(one, buffers[0]);
      for (size_t i = 0; i < users; ++i) {
        const double sum = sum_at(type_, inputs, i);
        const double greatest = power_of_greatest(type_, inputs, i / kLanes * kLanes,
                                                  std::min(users, i / kLanes * kLanes + kLanes));
        const double error =
            greatest * n * std::ldexp(1, by_the_book::log2_ceil(n) - 2) * std::exp2(-p);
        ASSERT_NEAR(value(type_, buffers[0][i]), sum,
                    error + by_the_book::ulp(type_, std::fabs(sum) + error) / 2)
            << users << " users, element " << i << ", 2^" << above << " behind";
      }
    }
  }
  EXPECT_GT(job_.simulation.worker(0).counters().fine_rounds, 0u);
}

INSTANTIATE_TEST_SUITE_P(Types, HalfLanes, testing::ValuesIn(all_cases()), [](const auto& info) {
  return std::string(info.param.type == DataType::kFloat16 ? "Half" : "Bfloat") +
         std::to_string(info.param.workers);
});

TEST(HalfLanesTree, TheSameBitsAsOneSwitch) {
  for (const DataType type : {DataType::kBfloat16, DataType::kFloat16}) {
    Halves by_one;
    for (const std::vector<uint32_t>& leaves : {std::vector<uint32_t>{8}, {3, 5}, {2, 1, 4, 1}}) {
      Job job({.leaves = leaves,
               .lanes = kLanes,
               .shards = 2,
               .half_bits = HalfBits::k16,
               .network = {.loss = 0.02, .duplication = 0.02, .jitter_ns = 200'000}});
      const Halves inputs = inputs_of(job, type, 1000, normal);
      Halves buffers = inputs;
      ASSERT_TRUE(job.reduce(pointers(buffers), type));
      ASSERT_NO_FATAL_FAILURE(expect_close(type, inputs, buffers));
      if (by_one.empty()) by_one = buffers;
      EXPECT_EQ(buffers, by_one);
    }
  }
}

uint64_t packets_for(HalfBits bits, DataType type, uint32_t workers, size_t count) {
  Job job({.leaves = {workers}, .lanes = kLanes, .half_bits = bits});
  Halves inputs = inputs_of(job, type, count, [](std::mt19937_64&) { return 1.0; });
  EXPECT_TRUE(job.reduce(pointers(inputs), type));
  const WorkerCounters& counters = job.simulation.worker(0).counters();
  EXPECT_EQ(counters.retransmitted, 0u);
  return counters.sent - counters.exponent_rounds;
}

TEST(HalfLanesCost, HalfThePackets) {
  constexpr size_t kCount = 64 * kLanes;
  for (const uint32_t workers : {2, 8, 9}) {
    for (const DataType type : {DataType::kBfloat16, DataType::kFloat16}) {
      EXPECT_EQ(packets_for(HalfBits::k32, type, workers, kCount), 64u);
      EXPECT_EQ(packets_for(HalfBits::k16, type, workers, kCount), 32u);
      const bool good = type == DataType::kBfloat16 && workers <= 8;
      EXPECT_EQ(packets_for(HalfBits::kAuto, type, workers, kCount), good ? 32u : 64u);
    }
  }
}

// What other types cost, and how exact they are, does not depend on it.
TEST(HalfLanesCost, OtherTypesStayAsTheyAre) {
  for (const HalfBits bits : {HalfBits::k32, HalfBits::k16, HalfBits::kAuto}) {
    Job job({.leaves = {2}, .lanes = kLanes, .half_bits = bits});
    std::vector<std::vector<float>> floats(2, std::vector<float>(4 * kLanes, 0x1.000002p0F));
    ASSERT_TRUE(job.reduce(pointers(floats), DataType::kFloat32));
    EXPECT_EQ(floats[0], std::vector<float>(4 * kLanes, 0x1.000002p1F));
    const WorkerCounters& counters = job.simulation.worker(0).counters();
    EXPECT_EQ(counters.sent - counters.exponent_rounds, 4u);
  }
}

// Rounds for single elements cost more than the wide lanes that they save, so they must be rare.
TEST(HalfLanesCost, OrdinaryNumbersNeedNoFineRounds) {
  for (const uint32_t workers : {2u, 4u, 8u}) {
    Job job({.leaves = {workers}, .slots = 16, .lanes = 256, .half_bits = HalfBits::kAuto});
    Halves inputs = inputs_of(job, DataType::kBfloat16, 512 * 200, normal);
    ASSERT_TRUE(job.reduce(pointers(inputs), DataType::kBfloat16));
    EXPECT_LE(job.simulation.worker(0).counters().fine_rounds, 10u) << workers;
  }
}

// The switch dies on the way; the sums are those it would have made.
TEST(HalfLanesMove, GoOnWithoutTheSwitchToTheSameBits) {
  for (uint64_t seed = 1; seed < 12; ++seed) {
    Halves by_switch;
    for (const bool killed : {false, true}) {
      Job job({.leaves = {3},
               .slots = 8,
               .half_bits = HalfBits::kAuto,
               .network = {.seed = seed, .loss = 0.05, .jitter_ns = 300'000}});
      Halves buffers = inputs_of(job, DataType::kBfloat16, 6000, normal);
      buffers[1][700] = 0x7f80;
      std::vector<uint64_t> tickets(3);
      for (uint32_t rank = 0; rank < 3; ++rank) {
        ASSERT_EQ(job.simulation.worker(rank).start({.send = buffers[rank].data(),
                                                     .receive = buffers[rank].data(),
                                                     .count = 6000,
                                                     .type = DataType::kBfloat16},
                                                    1, &tickets[rank]),
                  Status::kOk);
      }
      if (killed) {
        const uint64_t at_ns = 1'000'000 + seed * 1'500'000;
        ASSERT_TRUE(job.simulation.run_until([&] { return job.simulation.now_ns() >= at_ns; }));
        EXPECT_FALSE(job.simulation.worker(0).done(tickets[0]));
        job.simulation.kill_switch();
        job.simulation.move_to_ranks(4);
      }
      ASSERT_TRUE(job.simulation.run_until([&] {
        bool all = true;
        for (uint32_t rank = 0; rank < 3; ++rank)
          all &= job.simulation.worker(rank).done(tickets[rank]);
        return all;
      })) << "seed "
          << seed;
      if (!killed) by_switch = buffers;
      ASSERT_EQ(buffers, by_switch) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace slime
