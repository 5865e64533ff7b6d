// What rail.h promises about works that go well.
#include <algorithm>
#include <bit>
#include <random>

#include "test/contract/worlds.h"

namespace slime::contract {
namespace {

template <typename T>
class RailData : public Contract<T> {};
TYPED_TEST_SUITE(RailData, AllRails, RailName);

const std::vector<uint32_t> kEdges = {
    1,    2,    7,    8,    63,   64,    65,    127,   128,    129,     4095,
    4096, 4097, 8191, 8192, 8193, 65535, 65536, 65537, 131071, 1 << 20, (1 << 20) + 1};

std::vector<uint32_t> random_lengths(uint32_t seed, size_t count, uint32_t longest) {
  std::mt19937 random(seed);
  std::vector<uint32_t> lengths(count);
  for (uint32_t& length : lengths) {
    const uint32_t bound = random() % 4 == 0 ? longest : 200;  // mostly small, as control messages
    length = random() % (bound + 1);
  }
  return lengths;
}

TYPED_TEST(RailData, OneWorkOfEachSizeArrivesExactly) {
  this->in_each_mode([this](Pair& pair) {
    for (const uint32_t length : kEdges) {
      SCOPED_TRACE(length);
      pair.transfer(pair.left, {length});
      ASSERT_TRUE(pair.run()) << this->failures_of(pair);
      pair.transfer(pair.right, {length});
      ASSERT_TRUE(pair.run()) << this->failures_of(pair);
    }
    this->expect_delivery(pair);
  });
}

TYPED_TEST(RailData, AllSizesInOneBatch) {
  this->in_each_mode([this](Pair& pair) {
    pair.transfer(pair.left, kEdges);
    this->expect_delivery(pair);
  });
}

TYPED_TEST(RailData, ZeroLengthCarriesTheImmediateAndIgnoresAddressAndKey) {
  this->in_each_mode([this](Pair& pair) {
    Transfer& ledger = pair.transfer(pair.left, {0, 0});
    std::vector<Work> works(ledger.works().begin(), ledger.works().end());
    works[0].local = works[1].local = nullptr;
    works[0].local_key = works[1].local_key = 0xdead;
    works[0].remote_address = works[0].remote_offset = 1;
    works[1].remote_address = works[1].remote_offset = UINT64_MAX;
    works[0].remote_key = works[1].remote_key = 0xbeef;
    size_t taken = 0;
    ASSERT_EQ(pair.left.channel->post(works, &taken), Status::kOk);
    ASSERT_EQ(taken, 2U);
    ledger.took(taken);
    this->expect_delivery(pair);
  });
}

TYPED_TEST(RailData, WorksOfMegabytes) {
  this->in_each_mode([this](Pair& pair) {
    pair.transfer(pair.left, {(5 << 20) + 13, 3, (7 << 20) - 1, 0, 2 << 20});
    pair.transfer(pair.right, {(3 << 20) + 1, (4 << 20) + 128});
    this->expect_delivery(pair);
  });
}

TYPED_TEST(RailData, MoreWorksThanTheQueueHoldsAreTakenInPieces) {
  this->in_each_mode([this](Pair& pair) {
    const size_t depth = pair.left.rail->caps().send_queue_depth;
    Transfer& ledger = pair.transfer(pair.left, std::vector<uint32_t>(5 * depth + 3, 100));
    // Nobody polls: no completion can free a place.
    for (bool moved = true; moved;) moved = pair.post(pair.left, 5 * depth);
    EXPECT_EQ(pair.left.status, Status::kOk) << this->failures_of(pair);
    EXPECT_EQ(ledger.posted(), depth);
    EXPECT_FALSE(pair.post(pair.left, 1)) << "a full queue took one more";
    EXPECT_EQ(pair.left.status, Status::kOk) << "a full queue is no error";
    this->expect_delivery(pair, {5 * depth, 16});
  });
}

TYPED_TEST(RailData, PlacesInTheQueueComeBackOneByOne) {
  this->in_each_mode([this](Pair& pair) {
    const size_t depth = pair.left.rail->caps().send_queue_depth;
    Transfer& ledger = pair.transfer(pair.left, std::vector<uint32_t>(3 * depth, 40));
    while (pair.left.status == Status::kOk && ledger.posted() < ledger.size()) {
      pair.post(pair.left, depth);
      ASSERT_LE(ledger.posted() - ledger.sent_count(), depth) << "more outstanding than places";
      ASSERT_TRUE(pair.poll(pair.left, 1) || pair.poll(pair.right, 3) || this->world_->pump());
    }
    this->expect_delivery(pair);
  });
}

// ChannelOptions::depth. What the rails can do at most holds all the same.
TYPED_TEST(RailData, AChannelHasAsManyPlacesAsItWasOpenedWith) {
  const RailCaps& caps = this->world_->left().caps();
  for (const uint32_t depth : {1U, 8U, 13U, 1U << 20}) {
    SCOPED_TRACE(depth);
    Pair pair(*this->world_, {.confirm_delivery = true, .depth = depth});
    ASSERT_TRUE(pair.connect()) << this->failures_of(pair);
    const uint32_t most = std::min(caps.send_queue_depth, std::bit_floor(depth));
    std::vector<Transfer*> of_left;
    for (const Opcode opcode : this->opcodes()) {
      const std::vector<uint32_t> lengths(2 * caps.send_queue_depth, 100);
      of_left.push_back(&pair.transfer(pair.left, lengths, opcode));
      pair.transfer(pair.right, lengths, opcode);
    }
    while (pair.post(pair.left, 64)) {
    }
    size_t writes = 0;
    for (const Transfer* transfer : of_left) {
      const bool reads = transfer->is(Opcode::kRead);
      writes += reads ? 0 : transfer->posted();
      EXPECT_EQ(reads ? transfer->posted() : 0,
                reads ? std::min(caps.max_outstanding_reads, most) : 0);
    }
    EXPECT_EQ(writes, most);
    this->expect_delivery(pair);
  }
}

TYPED_TEST(RailData, ManyWorksBothWays) {
  this->in_each_mode([this](Pair& pair) {
    pair.transfer(pair.left, random_lengths(1, 600, 20'000));
    pair.transfer(pair.right, random_lengths(2, 600, 20'000));
    this->expect_delivery(pair);
  });
}

TYPED_TEST(RailData, AnyBatchAndAnyRoomToPoll) {
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    this->in_each_mode([&](Pair& pair) {
      pair.transfer(pair.left, random_lengths(random(), random() % 120, 9'000));
      pair.transfer(pair.right, random_lengths(random(), random() % 120, 9'000));
      this->expect_delivery(pair, {1 + random() % 70, 1 + random() % 20});
    });
  }
}

TYPED_TEST(RailData, OneAtATime) {
  this->in_each_mode([this](Pair& pair) {
    pair.transfer(pair.left, random_lengths(3, 150, 3'000));
    pair.transfer(pair.right, random_lengths(4, 150, 3'000));
    this->expect_delivery(pair, {1, 1});
  });
}

TYPED_TEST(RailData, EmptyPostsAndEmptyPollsDoNothing) {
  this->in_each_mode([this](Pair& pair) {
    pair.transfer(pair.left, {100, 200});
    size_t count = 1;
    EXPECT_EQ(pair.left.channel->post({}, &count), Status::kOk);
    EXPECT_EQ(count, 0U);
    while (pair.post(pair.left, 2)) continue;
    for (int i = 0; i < 50; ++i) {
      this->world_->pump();
      for (End* end : {&pair.left, &pair.right}) {
        count = 1;
        EXPECT_EQ(end->channel->poll({}, &count), Status::kOk);
        EXPECT_EQ(count, 0U);
      }
    }
    this->expect_delivery(pair);
  });
}

// The ledger overwrites each source at its kSent; here the receiver sleeps until all are sent.
TYPED_TEST(RailData, SentMemoryMayBeReusedThoughThePeerSleeps) {
  this->in_each_mode([this](Pair& pair) {
    pair.transfer(pair.left, random_lengths(5, 200, 60'000));
    pair.run_alone(pair.left);
    this->expect_delivery(pair);
  });
}

TYPED_TEST(RailData, ConfirmationWaitsForThePeersPollUnlessItsNicConfirms) {
  Pair pair(*this->world_, {.confirm_delivery = true});
  ASSERT_TRUE(pair.connect()) << this->failures_of(pair);
  Transfer& ledger = pair.transfer(pair.left, {0, 1, 100, 5'000});
  while (pair.post(pair.left, 4)) continue;
  for (int i = 0; i < 300; ++i) {
    pair.poll(pair.left, 16);
    this->world_->pump();
  }
  const size_t early = pair.right.rail->caps().confirms_in_hardware ? 4U : 0U;
  EXPECT_EQ(ledger.sent_count(), early) << "confirmed although the peer has not polled";
  this->expect_delivery(pair);
}

// A rail may report them as sent before they arrive, and need not. Each is reported once, its
// memory may be reused from then on, and the works around it are confirmed as always.
TYPED_TEST(RailData, UnconfirmedWorksAmongConfirmedOnes) {
  Pair pair(*this->world_, {.confirm_delivery = true, .some_unconfirmed = true});
  ASSERT_TRUE(pair.connect()) << this->failures_of(pair);
  pair.transfer(pair.left, random_lengths(10, 200, 9'000));
  pair.transfer(pair.right, random_lengths(11, 100, 9'000));
  pair.run_alone(pair.left);
  this->expect_delivery(pair);
}

TYPED_TEST(RailData, ManyChannelsOverTwoRails) {
  for (const bool confirm : {false, true}) {
    std::vector<std::unique_ptr<Pair>> pairs;
    for (int i = 0; i < 16; ++i) {
      pairs.push_back(std::make_unique<Pair>(*this->world_, PairOptions{confirm, i % 3 != 0}));
      ASSERT_TRUE(pairs.back()->connect()) << this->failures_of(*pairs.back());
      pairs.back()->transfer(pairs.back()->left, random_lengths(i, 80, 5'000));
      pairs.back()->transfer(pairs.back()->right, random_lengths(i + 50, 80, 5'000));
    }
    // Interleaved by hand for a while, then each to its end.
    for (int round = 0; round < 60; ++round) {
      for (auto& pair : pairs) {
        for (End* end : {&pair->left, &pair->right}) pair->post(*end, 3), pair->poll(*end, 4);
      }
      this->world_->pump();
    }
    for (auto& pair : pairs) this->expect_delivery(*pair);
  }
}

TYPED_TEST(RailData, BothEndsOnOneRail) {
  for (const bool confirm : {false, true}) {
    Pair pair(*this->world_, {.confirm_delivery = confirm, .same_rail = true});
    ASSERT_TRUE(pair.connect()) << this->failures_of(pair);
    pair.transfer(pair.left, random_lengths(8, 100, 9'000));
    pair.transfer(pair.right, random_lengths(9, 100, 9'000));
    this->expect_delivery(pair);
  }
}

TYPED_TEST(RailData, CountersAddUp) {
  this->in_each_mode([this](Pair& pair) {
    const Transfer& out = pair.transfer(pair.left, random_lengths(6, 200, 10'000));
    const Transfer& in = pair.transfer(pair.right, random_lengths(7, 100, 10'000));
    this->expect_delivery(pair);
    const RailTotals left = snapshot(pair.left.channel->counters);
    EXPECT_EQ(left.works, out.size());
    EXPECT_EQ(left.bytes_sent, out.bytes());
    EXPECT_EQ(left.arrivals, in.size());
    EXPECT_EQ(left.bytes_received, in.bytes());
    EXPECT_GE(left.doorbells, 1U);
    EXPECT_LE(left.doorbells, left.works + left.polls) << "more than one doorbell per call";
    EXPECT_GE(left.polls, left.empty_polls);
    EXPECT_GT(left.empty_polls, 0U);
  });
}

}  // namespace
}  // namespace slime::contract
