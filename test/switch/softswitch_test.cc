// The software switch over loopback: what workers see.
#include "switch/softswitch/softswitch.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "test/switch/udp_worker.h"

namespace slime::net {
namespace {

using test::open_switch;
using test::options_on;
using test::run_round;
using test::sum_of;
using test::Team;
using test::Words;
using test::words_of;
using test::Worker;

class Sums : public testing::TestWithParam<uint32_t> {};

// All slots at once, several rounds: both halves, both shards.
TEST_P(Sums, ReachEveryChild) {
  constexpr size_t kLanes = 33;
  constexpr uint16_t kSlots = 8;
  const auto soft = open_switch();
  Team team(*soft, GetParam());
  team.spec.slots = kSlots;
  team.join(*soft);
  for (uint32_t epoch = 1; epoch <= 5; ++epoch) {
    for (uint16_t slot = 0; slot < kSlots; ++slot) {
      for (uint32_t child = 0; child < GetParam(); ++child) {
        team.workers[child].contribute(slot, epoch, words_of(child, slot, epoch, kLanes));
      }
    }
    for (Worker& worker : team.workers) {
      std::set<uint16_t> slots;
      for (uint32_t i = 0; i < kSlots; ++i) {
        const auto packet = worker.receive();
        ASSERT_TRUE(packet);
        const sap::Header& header = packet->header;
        EXPECT_EQ(header.type, sap::Type::kResult);
        EXPECT_EQ(header.epoch, epoch);
        EXPECT_EQ(header.cookie, 0xC0FFEE);
        EXPECT_EQ(packet->words, sum_of(GetParam(), header.slot, epoch, kLanes));
        uint32_t check = 0;
        for (const uint32_t word : packet->words) check += word;
        EXPECT_EQ(header.check, check);
        EXPECT_EQ(packet->from.port(), soft->shape().address.port() + header.slot % 2);
        slots.insert(header.slot);
      }
      EXPECT_EQ(slots.size(), team.spec.slots);
      EXPECT_EQ(recv(worker.fd(), nullptr, 0, MSG_DONTWAIT), -1);
    }
  }
  const auto totals = soft->totals(team.spec.job);
  ASSERT_TRUE(totals);
  EXPECT_EQ(totals->rounds, 5 * team.spec.slots);
  EXPECT_EQ(totals->contributions, 5 * team.spec.slots * GetParam());
}
INSTANTIATE_TEST_SUITE_P(Children, Sums, testing::Values(1, 2, 8, 32));

TEST(SoftSwitch, FoldsADuplicateOnce) {
  const auto soft = open_switch();
  Team team(*soft, 2);
  team.join(*soft);
  team.workers[0].contribute(3, 1, {10, 20});
  team.workers[0].contribute(3, 1, {10, 20});
  team.workers[1].contribute(3, 1, {1, 2});
  const auto packet = team.workers[1].result(3, 1);
  ASSERT_TRUE(packet);
  EXPECT_EQ(packet->words, (Words{11, 22}));
  EXPECT_EQ(soft->totals(1)->duplicates, 1u);
}

TEST(SoftSwitch, AnswersAgainOnlyToWhoAsks) {
  const auto soft = open_switch();
  Team team(*soft, 2);
  team.join(*soft);
  run_round(team.workers, 0, 1, 64);
  run_round(team.workers, 0, 2, 64);  // the other half: round 1 is still there
  for (const uint32_t epoch : {1u, 2u}) {
    team.workers[0].contribute(0, epoch, words_of(0, 0, epoch, 64));
    const auto packet = team.workers[0].receive();
    ASSERT_TRUE(packet);
    EXPECT_EQ(packet->header.type, sap::Type::kResultAgain);
    EXPECT_EQ(packet->header.epoch, epoch);
    EXPECT_EQ(packet->words, sum_of(2, 0, epoch, 64));
  }
  EXPECT_TRUE(team.workers[1].hears_nothing());
  run_round(team.workers, 0, 3, 64);
  team.workers[0].contribute(0, 1, words_of(0, 0, 1, 64));  // over by now
  EXPECT_TRUE(team.workers[0].hears_nothing());
}

TEST(SoftSwitch, TellsWhoHasContributed) {
  const auto soft = open_switch();
  Team team(*soft, 8);
  team.join(*soft);
  for (const uint32_t child : {1u, 4u, 7u}) team.workers[child].contribute(5, 1, {child});
  // Each asks after its own contribution, which the kernel keeps in order.
  Words seen;
  for (const uint32_t child : {1u, 4u, 7u}) {
    team.workers[child].query(5, 1);
    const auto packet = team.workers[child].receive();
    ASSERT_TRUE(packet);
    EXPECT_EQ(packet->header.type, sap::Type::kStatus);
    seen = packet->words;
  }
  EXPECT_EQ(seen, Words{0b1001'0010});
  for (const uint32_t child : {0u, 2u, 3u, 5u, 6u}) team.workers[child].contribute(5, 1, {child});
  ASSERT_TRUE(team.workers[0].result(5, 1));
  team.workers[0].query(5, 1);
  const auto packet = team.workers[0].result(5, 1);
  ASSERT_TRUE(packet);
  EXPECT_EQ(packet->words, Words{28});
}

TEST(SoftSwitch, RejectsWhatIsNotItsOwn) {
  const auto soft = open_switch();
  Team team(*soft, 2);
  team.join(*soft);
  Worker& worker = team.workers[0];
  const auto expect = [](Worker& who, sap::Rejection why) {
    const auto packet = who.receive();
    ASSERT_TRUE(packet);
    EXPECT_EQ(packet->header.type, sap::Type::kReject);
    EXPECT_EQ(packet->words, Words{static_cast<uint32_t>(why)});
  };
  Worker stranger(soft->shape());
  stranger.be(9, 7, 0);
  stranger.contribute(0, 1, {1});
  expect(stranger, sap::Rejection::kNoJob);
  stranger.be(1, 7, 0);
  stranger.contribute(0, 1, {1});
  expect(stranger, sap::Rejection::kSource);
  worker.be(1, 7, 1);  // another child's
  worker.contribute(0, 1, {1});
  expect(worker, sap::Rejection::kSource);
  worker.be(1, 6, 0);
  worker.contribute(0, 1, {1});
  expect(worker, sap::Rejection::kGeneration);
  worker.be(1, 7, 0);
  worker.contribute(8, 1, {1});
  expect(worker, sap::Rejection::kSlot);
  sap::Header header = worker.header(sap::Type::kContribution, 1, 1, 1);
  worker.send_bytes(test::encode_packet(header, {1}), 0);  // slot 1 lives at port 1
  expect(worker, sap::Rejection::kSlot);
  header.slot = 2;
  header.format = sap::Format::kI64;  // half a number
  worker.send(header, {1});
  expect(worker, sap::Rejection::kShape);
  run_round(team.workers, 0, 1, 16);
}

TEST(SoftSwitch, KeepsTwoJobsApart) {
  const auto soft = open_switch();
  Team one(*soft, 2, 1), other(*soft, 3, 2);
  one.join(*soft);
  other.join(*soft);
  for (uint32_t epoch = 1; epoch <= 20; ++epoch) {
    for (uint16_t slot = 0; slot < 8; ++slot) {
      other.workers[0].contribute(slot, epoch, words_of(0, slot, epoch, 9));
      run_round(one.workers, slot, epoch, 200);
      run_round(other.workers, slot, epoch, 9);
    }
  }
  EXPECT_EQ(soft->totals(1)->rounds, 160u);
  EXPECT_EQ(soft->totals(2)->rounds, 160u);
}

TEST(SoftSwitch, SumsOverIpv6) {
  const auto soft = SoftSwitch::open(options_on("::1"));
  if (!soft && soft.error().code == EADDRNOTAVAIL) GTEST_SKIP() << soft.error().what;
  ASSERT_TRUE(soft);
  Team team(**soft, 3, 1, "::1");
  team.join(**soft);
  for (uint32_t epoch = 1; epoch <= 4; ++epoch) run_round(team.workers, 1, epoch, 100);
}

// Rounds of one slot so close to each other that an answer still waits when its memory is taken
// for the next round but one. No proper worker does that.
TEST(SoftSwitch, SendsAnAnswerBeforeItsMemoryIsUsedAgain) {
  const auto soft = open_switch();
  Team team(*soft, 1);
  team.join(*soft);
  constexpr size_t kLanes = 64;
  constexpr uint32_t kTogether = 30;
  for (uint32_t first = 1; first < 100 * kTogether; first += kTogether) {
    for (uint32_t i = 0; i < kTogether; ++i) {
      team.workers[0].contribute(0, first + i, words_of(0, 0, first + i, kLanes));
    }
    for (uint32_t i = 0; i < kTogether; ++i) {
      const auto packet = team.workers[0].receive();
      ASSERT_TRUE(packet);
      ASSERT_EQ(packet->words, words_of(0, 0, packet->header.epoch, kLanes));
    }
  }
}

TEST(SoftSwitch, CountsWhatItDoes) {
  const auto soft = open_switch();
  Team team(*soft, 2);
  team.join(*soft);
  for (uint32_t child : {0u, 1u}) team.workers[child].contribute(0, 1, Words(100, child));
  for (Worker& worker : team.workers) ASSERT_TRUE(worker.result(0, 1));
  ASSERT_TRUE(soft->remove_job(1));  // after the batch: the counters are complete
  const IoTotals totals = soft->io_totals();
  EXPECT_EQ(totals.packets_in, 2u);
  EXPECT_EQ(totals.packets_out, 2u);
  EXPECT_EQ(totals.bytes_in, 2 * 432u);
  EXPECT_EQ(totals.bytes_out, 2 * 432u);
  EXPECT_EQ(totals.send_drops, 0u);
  EXPECT_EQ(soft->shard_counters(0).packets.get(), 2u);
  EXPECT_EQ(soft->shard_counters(1).packets.get(), 0u);
}

// Counters move while they are read: what came together stands there together in the end only.
TEST(SoftSwitch, ListsCountersOfAllShards) {
  const auto soft = open_switch();
  ASSERT_EQ(soft->shape().shards, 2u);
  Worker stranger(soft->shape());
  for (uint32_t shard : {0u, 1u, 1u}) {
    stranger.send_bytes(std::vector<std::byte>(3, std::byte{9}), shard);
  }
  const std::map<std::string, uint64_t> three = {
      {"malformed", 3}, {"packets_in", 3}, {"bytes_in", 9}, {"packets_out", 0}, {"unknown_job", 0}};
  std::map<std::string, uint64_t> counted;
  const uint64_t end_ms = test::now_ms() + test::kPatienceMs;
  while (counted != three && test::now_ms() < end_ms) {
    counted.clear();
    std::set<std::string> names;
    for (const DeviceCounter& one : soft->counters()) {
      EXPECT_STRNE(one.help, "");
      EXPECT_TRUE(names.insert(one.name).second) << one.name << " is there twice";
      if (three.contains(one.name)) counted[one.name] = one.value;
    }
  }
  EXPECT_EQ(counted, three);
}

}  // namespace
}  // namespace slime::net
