// Damaged, mismatched and forged packets: a worker finds them, and accepts no wrong result.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "test/collnet/simulation/sums.h"

namespace slime {
namespace {

using test::any_int;
using test::expect_exact_sum;
using test::Job;
using test::pointers;

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

struct Sent final : Datagrams {
  void send(const Destination&, std::span<const std::byte> datagram) override {
    last.assign(datagram.begin(), datagram.end());
  }
  std::vector<std::byte> last;
};

// The two copies of a maximum also agree when a contribution is missing. The check says whether
// each was reduced once.
TEST(Worker, AMaximumIsTakenOnlyIfEachContributionWasReducedOnce) {
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
  using Times = std::array<uint32_t, 3>;  // by rank
  for (const Times& times : {Times{1, 0, 0}, Times{1, 0, 1}, Times{1, 2, 1}, Times{0, 2, 1},
                             Times{1, 2, 0}, Times{3, 0, 0}, Times{1, 1, 1}}) {
    EXPECT_FALSE((*worker)->done(ticket)) << testing::PrintToString(times);
    header.check = 0;
    for (uint32_t rank : {0, 1, 2}) header.check += times[rank] * sap::factor(rank);
    header.check *= sap::salt(header);
    sap::encode(header, sent.last.data());
    const std::vector<std::byte> result = sent.last;
    deliver(**worker, result, 2);
  }
  EXPECT_TRUE((*worker)->done(ticket));
  EXPECT_EQ((*worker)->counters().corrupt, 6u);
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

}  // namespace
}  // namespace slime
