// What rail.h promises of reads and silent writes. access_test.cc has their bad works.
#include <algorithm>
#include <cstring>

#include "test/contract/checks.h"
#include "test/contract/worlds.h"

namespace slime::contract {
namespace {

template <typename T>
class RailOpcodes : public Contract<T> {
 protected:
  static constexpr Opcode kSilent[] = {Opcode::kWrite, Opcode::kRead};

  static std::vector<uint32_t> many_lengths() {
    return {0, 1, 7, 8, 63, 4096, 65'537, 300'000, 0, 262'144, 262'145, 33, 1'000'000, 5};
  }
  static void expect_clean_ledger(const Transfer& ledger) {
    for (const std::string& problem : ledger.problems()) ADD_FAILURE() << problem;
  }
};
TYPED_TEST_SUITE(RailOpcodes, RailsThatRead, RailName);

TYPED_TEST(RailOpcodes, PiecesOfAllSizesComeToTheirPlaces) {
  for (const Opcode opcode : this->kSilent) {
    this->in_each_mode([&](Pair& pair) {
      pair.transfer(pair.left, this->many_lengths(), opcode);
      this->expect_delivery(pair);
    });
  }
}

TYPED_TEST(RailOpcodes, AllKindsBothWaysAtOnceWithFullQueues) {
  for (const Pace pace : {Pace{64, 16}, Pace{1, 1}, Pace{5, 64}}) {
    this->in_each_mode([&](Pair& pair) {
      for (const Opcode opcode : this->opcodes()) {
        for (End* end : {&pair.left, &pair.right}) {
          pair.transfer(*end, std::vector<uint32_t>(150, 10'000), opcode);
        }
      }
      this->expect_delivery(pair, pace);
    });
  }
}

// More of them than a NIC has receives.
TYPED_TEST(RailOpcodes, TheyEndWithoutPollsOfTheTargetWhereItsNicMovesThem) {
  constexpr size_t kWorks = 1'100;
  for (const Opcode opcode : this->kSilent) {
    this->in_each_mode([&](Pair& pair) {
      const Transfer& ledger = pair.transfer(pair.left, std::vector<uint32_t>(kWorks, 500), opcode);
      pair.run_alone(pair.left);
      EXPECT_EQ(ledger.sent_count(), pair.left.rail->caps().arrives_unpolled ? kWorks : 0);
      this->expect_delivery(pair);
    });
  }
}

// Nothing at the target tells that they came, and no receive is used up.
TYPED_TEST(RailOpcodes, TheyCostTheTargetsNicNeitherReceivesNorCompletions) {
  if (!this->world_->nic_calls(this->world_->right())) {
    GTEST_SKIP() << "nobody counts the calls of this rail's NIC";
  }
  for (const Opcode opcode : this->opcodes()) {
    Pair pair(*this->world_, {});
    ASSERT_TRUE(pair.connect());
    pair.settle();
    const auto before = *this->world_->nic_calls(*pair.right.rail);
    pair.transfer(pair.left, std::vector<uint32_t>(100, 500), opcode);
    this->expect_delivery(pair);
    const auto after = *this->world_->nic_calls(*pair.right.rail);
    EXPECT_GT(after.polls, before.polls);
    const bool silent = opcode != Opcode::kWriteWithImmediate;
    EXPECT_EQ(after.arrivals - before.arrivals, silent ? 0U : 100U);
    EXPECT_EQ(after.receives == before.receives, silent);
  }
}

// Where writes are ordered, one with an immediate says that the silent ones before it are there.
TYPED_TEST(RailOpcodes, AnImmediateComesAfterTheSilentWritesBeforeIt) {
  if (!this->world_->left().caps().ordered) GTEST_SKIP() << "this rail does not order writes";
  this->in_each_mode([&](Pair& pair) {
    constexpr size_t kWorks = 100;
    const std::vector<uint32_t> lengths(kWorks, 9'000);
    Transfer& silent = pair.transfer(pair.left, lengths, Opcode::kWrite);
    Transfer& loud = pair.transfer(pair.left, lengths);
    for (size_t seen = 0, rounds = 0; seen < kWorks && rounds < 100'000; ++rounds) {
      // One after the other; post() offers the silent one first.
      if (silent.posted() == loud.posted()) {
        pair.post(pair.left, 1);
      } else if (loud.posted() < silent.posted()) {
        size_t taken = 0;
        ASSERT_EQ(pair.left.channel->post(loud.unposted().first(1), &taken), Status::kOk);
        loud.took(taken);
      }
      pair.poll(pair.left, 4);
      pair.poll(pair.right, 4);
      this->world_->pump();
      for (; seen < kWorks && loud.has_arrived(seen); ++seen) {
        EXPECT_TRUE(silent.landed_whole(seen)) << seen;
      }
    }
    this->expect_delivery(pair);
  });
}

TYPED_TEST(RailOpcodes, ReadsHavePlacesOfTheirOwn) {
  this->in_each_mode([&](Pair& pair) {
    const RailCaps& caps = pair.left.rail->caps();
    const std::vector<uint32_t> lengths(caps.max_outstanding_reads + 5, 100);
    const Transfer& reads = pair.transfer(pair.left, lengths, Opcode::kRead);
    const Transfer& writes = pair.transfer(pair.left, {10}, Opcode::kWrite);
    while (pair.post(pair.left, 64)) {
    }
    EXPECT_EQ(reads.posted(), caps.max_outstanding_reads);
    EXPECT_EQ(writes.posted(), 1U) << "a write has no place because of reads";
    this->expect_delivery(pair);
  });
}

TYPED_TEST(RailOpcodes, NoSilentWriteIsWrittenAfterAFence) {
  for (int rounds = 1; rounds < 40; rounds += 4) {
    this->in_each_mode([&](Pair& pair) {
      for (const std::string& problem : fence_problems(pair, rounds, Opcode::kWrite)) {
        ADD_FAILURE() << problem;
      }
    });
  }
}

TYPED_TEST(RailOpcodes, NoAnswerIsWrittenAfterAFence) {
  size_t under_way = 0;
  for (int rounds = 2; rounds < 40; rounds += 6) {
    this->in_each_mode([&](Pair& pair) {
      Transfer& ledger = pair.transfer(pair.left, std::vector<uint32_t>(60, 50'000), Opcode::kRead);
      for (int i = 0; i < rounds; ++i) {
        pair.post(pair.left, 3);
        if (i % 2 != 0) pair.poll(pair.left, 2);
        pair.poll(pair.right, 2);
        this->world_->pump();
      }
      pair.left.channel->fence();
      under_way += ledger.posted() - ledger.sent_count();
      const std::vector<std::byte> before = ledger.target().copy();
      pair.settle();
      EXPECT_TRUE(ledger.target().copy() == before) << "written after the fence";
      this->expect_clean(pair);
    });
  }
  EXPECT_GT(under_way, 0U);
}

// Its answers wait; those of a channel beside it do not, nor does deregister_memory().
TYPED_TEST(RailOpcodes, APeerThatDoesNotTakeItsAnswersHoldsUpNobody) {
  this->in_each_mode([&](Pair& stuck) {
    Transfer& waits = stuck.transfer(stuck.left, std::vector<uint32_t>(6, 2 << 20), Opcode::kRead);
    Pair beside(*this->world_, {});
    ASSERT_TRUE(beside.connect());
    beside.transfer(beside.left, std::vector<uint32_t>(40, 100'000), Opcode::kRead);
    stuck.post(stuck.left, 6);
    for (int i = 0; i < 100; ++i) {
      stuck.poll(stuck.right, 4);
      beside.post(beside.left, 4);
      beside.poll(beside.left, 4);
      beside.poll(beside.right, 4);
      this->world_->pump();
    }
    this->expect_delivery(beside);
    EXPECT_EQ(waits.posted(), 6U);
    // Where a NIC answers, most have ended; what has not would fail the channel.
    if (stuck.goes_on_after_refusal(Opcode::kRead)) waits.source().deregister();
    EXPECT_TRUE(stuck.run()) << this->failures_of(stuck);
    this->expect_clean_ledger(waits);
  });
}

// What is written there afterwards belongs to somebody else.
TYPED_TEST(RailOpcodes, MemoryThatIsDeregisteredDuringAReadIsNotLeaked) {
  constexpr int kSecret = 0x99;
  size_t refused = 0, sent = 0;
  for (int rounds = 2; rounds < 50; rounds += 12) {
    this->in_each_mode([&](Pair& pair) {
      Transfer& ledger =
          pair.transfer(pair.left, std::vector<uint32_t>(12, 400'000), Opcode::kRead);
      for (int i = 0; i < rounds; ++i) {
        pair.post(pair.left, 4);
        pair.poll(pair.left, 1);
        pair.poll(pair.right, 4);
        this->world_->pump();
      }
      ledger.source().deregister();
      std::memset(ledger.source().bytes().data(), kSecret, ledger.source().bytes().size());
      const bool all_ended = pair.run();
      sent += ledger.sent_count();
      refused += ledger.refused_count();
      if (pair.goes_on_after_refusal(Opcode::kRead)) {
        EXPECT_TRUE(all_ended) << this->failures_of(pair);
        EXPECT_EQ(pair.left.status, Status::kOk);
        EXPECT_EQ(pair.right.status, Status::kOk);
      } else if (!all_ended || ledger.refused_count() > 0) {
        EXPECT_TRUE(pair.await_failure(pair.left));  // Soft-RoCE may fail without a refusal
      }
      const auto got = ledger.target().bytes();
      constexpr int kNotByChance = 16;  // bytes in a row
      EXPECT_TRUE(std::search_n(got.begin(), got.end(), kNotByChance, std::byte{kSecret}) ==
                  got.end());
      this->expect_clean_ledger(ledger);
    });
  }
  EXPECT_GT(refused, 0U);
  EXPECT_GT(sent, 0U);
}

}  // namespace
}  // namespace slime::contract
