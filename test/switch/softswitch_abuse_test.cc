// The software switch among garbage, dead children and packets of the wrong length; and trees.
#include <gmock/gmock.h>

#include <cstdlib>
#include <random>

#include "switch/softswitch/softswitch.h"
#include "test/switch/udp_worker.h"

namespace slime::net {
namespace {

using test::open_switch;
using test::options_on;
using test::run_round;
using test::Team;
using test::Words;
using test::Worker;

// SLIME_TEST_SEED replays a run.
uint32_t seed() {
  const char* text = std::getenv("SLIME_TEST_SEED");
  return text ? static_cast<uint32_t>(std::strtoul(text, nullptr, 0)) : std::random_device()();
}

// Bytes of any kind, or a packet of the job with some bits turned.
std::vector<std::byte> garbage(std::mt19937& random, const Worker& stranger) {
  std::vector<std::byte> bytes(random() % 300);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  if (random() % 4 == 0) return bytes;
  const auto type = static_cast<sap::Type>(1 + random() % 8);
  sap::Header header = stranger.header(type, random() % 16, random() % 8, random() % 70);
  header.child = random() % 32;
  bytes = test::encode_packet(header, Words(header.lanes, random()));
  for (uint32_t flips = random() % 3; flips > 0; --flips) {
    bytes[random() % bytes.size()] ^= static_cast<std::byte>(1u << random() % 8);
  }
  return bytes;
}

// Calls `send` for each of `packets` hostile packets, with the number of rounds so far, and runs a
// round of the team after every 500th. Returns how many rounds there were.
template <typename Send>
uint32_t run_beside(Team& team, uint32_t packets, Send send) {
  constexpr uint32_t kBetween = 500;
  uint32_t rounds = 0;
  for (uint32_t i = 0; i < packets; ++i) {
    send(rounds);
    if (i % kBetween != 0) continue;
    run_round(team.workers, static_cast<uint16_t>(rounds % 8), rounds / 8 + 1, 64, test::kResendMs);
    if (testing::Test::HasFatalFailure()) break;
    ++rounds;
  }
  return rounds;
}

TEST(SoftSwitchAbuse, GarbageChangesNothing) {
  const uint32_t used_seed = seed();
  SCOPED_TRACE("SLIME_TEST_SEED=" + std::to_string(used_seed));
  std::mt19937 random(used_seed);
  const auto soft = open_switch();
  Team team(*soft, 2);
  team.join(*soft);
  Worker stranger(soft->shape());
  stranger.be(1, team.spec.generation, 0);
  constexpr uint32_t kPackets = 100'000;
  const uint32_t rounds = run_beside(team, kPackets, [&](uint32_t) {
    stranger.send_bytes(garbage(random, stranger), random() % 2);
  });
  if (testing::Test::HasFatalFailure()) return;
  const auto totals = soft->totals(1);
  ASSERT_TRUE(totals);
  EXPECT_EQ(totals->rounds, rounds);
  EXPECT_EQ(totals->contributions, 2 * rounds);
  EXPECT_GT(totals->rejected_source, 0u);
  EXPECT_GT(soft->shard_counters(0).malformed.get(), 0u);
  // The kernel may have dropped some, but not most.
  EXPECT_GT(soft->io_totals().packets_in, kPackets / 2);
}

TEST(SoftSwitchAbuse, APacketThatIsTooLongIsNotCutToFit) {
  const auto soft = open_switch();
  Team team(*soft, 1);
  team.join(*soft);
  auto bytes = test::encode_packet(team.workers[0].header(sap::Type::kContribution, 0, 1, 256),
                                   Words(256, 5));
  bytes.resize(bytes.size() + 4);
  team.workers[0].send_bytes(bytes);
  run_round(team.workers, 0, 1, 256);  // would be a repetition with another sum
  EXPECT_EQ(soft->io_totals().truncated, 1u);
  EXPECT_EQ(soft->shard_counters(0).malformed.get(), 1u);
}

// Nobody listens at the port of a child that is gone: the kernel gets ICMP's "port unreachable".
TEST(SoftSwitchAbuse, ADeadChildDisturbsNobody) {
  const auto soft = open_switch();
  Team broken(*soft, 2, 1), sound(*soft, 2, 2);
  broken.join(*soft);
  sound.join(*soft);
  for (uint32_t epoch = 1; epoch <= 50; ++epoch) {
    if (epoch == 2) broken.workers[0].close();
    for (uint16_t slot = 0; slot < 8; ++slot) {
      for (Worker& worker : broken.workers) worker.contribute(slot, epoch, Words(64, 1));
      run_round(sound.workers, slot, epoch, 64);
    }
  }
}

TEST(SoftSwitchAbuse, EmptyPacketsAreNoBell) {
  const auto soft = open_switch();
  Team team(*soft, 1);
  team.join(*soft);
  Worker stranger(soft->shape());
  for (int i = 0; i < 10; ++i) stranger.send_bytes({});
  run_round(team.workers, 0, 1, 8);
  EXPECT_EQ(soft->shard_counters(0).malformed.get(), 10u);
}

TEST(SoftSwitchAbuse, OtherVersionsAreCounted) {
  const auto soft = open_switch();
  Team team(*soft, 1);
  team.join(*soft);
  Worker& worker = team.workers[0];
  auto packet = test::encode_packet(worker.header(sap::Type::kContribution, 0, 1, 8), Words(8, 1));
  for (const uint8_t start : {0xa1, 0xa3}) {
    packet[sap::at::kMagicVersion] = std::byte{start};
    worker.send_bytes(packet);
  }
  worker.send_bytes({std::byte{0xa1}});
  run_round(team.workers, 0, 1, 8);
  EXPECT_EQ(soft->shard_counters(0).other_version.get(), 3u);
  EXPECT_EQ(soft->shard_counters(0).malformed.get(), 0u);
}

// Whoever sends from a worker's own address and port, with its job, generation and child, about the
// slots and rounds that are under way, or far ahead, and guesses the token.
TEST(SoftSwitchAbuse, WrongTokensChangeNothing) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr uint32_t kPackets = 50'000;
#else
  constexpr uint32_t kPackets = 1'000'000;
#endif
  const uint32_t used_seed = seed();
  SCOPED_TRACE("SLIME_TEST_SEED=" + std::to_string(used_seed));
  std::mt19937 random(used_seed);
  const auto soft = open_switch();
  Team team(*soft, 2);
  team.join(*soft);
  const uint32_t rounds = run_beside(team, kPackets, [&](uint32_t round) {
    Worker& victim = team.workers[random() % 2];
    const uint32_t epoch = round / 8 + random() % 3 + (random() % 16 ? 0 : 1u << random() % 31);
    const auto type = random() % 4 ? sap::Type::kContribution : sap::Type::kQuery;
    const Words words(type == sap::Type::kQuery ? 0 : 64, static_cast<uint32_t>(random()));
    sap::Header header = victim.header(type, random() % 8, epoch, words.size());
    header.token ^= 1 + random() % UINT32_MAX;
    victim.send(header, words);
  });
  if (testing::Test::HasFatalFailure()) return;
  const auto totals = soft->totals(1);
  ASSERT_TRUE(totals);
  EXPECT_EQ(totals->rounds, rounds);
  EXPECT_GT(totals->wrong_token, kPackets / 10) << "the socket drops some";
  EXPECT_EQ(soft->shard_counters(0).rejects_sent.get() + soft->shard_counters(1).rejects_sent.get(),
            0u);
}

// Two leaves of two workers each below a root.
TEST(SoftSwitchTree, SumsOverTwoLevels) {
  const auto root = open_switch();
  const std::unique_ptr<SoftSwitch> leaves[] = {open_switch(), open_switch()};
  JobSpec top;
  top.job = 1;
  top.generation = 7;
  top.token = test::kToken;
  top.slots = 8;
  top.max_lanes = 256;
  top.children_are_switches = true;
  std::vector<Worker> workers;
  for (uint8_t leaf : {0, 1}) {
    Team team(*leaves[leaf], 2);
    team.spec.parent = {.address = root->shape().address, .child = leaf};
    team.join(*leaves[leaf]);
    top.children.push_back(leaves[leaf]->shape().address);
    for (Worker& worker : team.workers) workers.push_back(std::move(worker));
  }
  ASSERT_TRUE(root->add_job(top));
  for (uint32_t epoch = 1; epoch <= 10; ++epoch) {
    for (uint16_t slot = 0; slot < 8; ++slot) {
      run_round(workers, slot, epoch, 200);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  EXPECT_EQ(root->totals(1)->rounds, 80u);
  EXPECT_EQ(leaves[0]->totals(1)->parent_results, 80u);
  // Lost on the way down: the leaf has it.
  workers[0].contribute(0, 10, test::words_of(0, 0, 10, 200));
  const auto again = workers[0].result(0, 10);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->words, test::sum_of(4, 0, 10, 200));
  EXPECT_EQ(root->totals(1)->results_again, 0u);
}

TEST(SoftSwitch, PollsBusily) {
  SoftSwitchOptions options = options_on();
  options.busy_poll_us = 100;
  const auto soft = open_switch(options);
  Team team(*soft, 2);
  team.join(*soft);
  for (uint32_t epoch = 1; epoch <= 20; ++epoch) run_round(team.workers, 0, epoch, 64);
  EXPECT_EQ(soft->totals(1)->rounds, 20u);
}

}  // namespace
}  // namespace slime::net
