// What rail.h promises about memory: nothing is written but what the key allows.
#include <algorithm>
#include <random>
#include <set>

#include "test/contract/checks.h"
#include "test/contract/worlds.h"

namespace slime::contract {
namespace {

template <typename T>
class RailAccess : public Contract<T> {
 protected:
  // One bad work of each kind in each mode, on channels of their own. `spoil` gets the work, the
  // ledger whose second work it is, and a second region of the peer that stays untouched too.
  template <typename Spoil>
  void expect_refusal(Spoil spoil) {
    for (const Opcode opcode : this->opcodes()) {
      SCOPED_TRACE("opcode " + std::to_string(static_cast<int>(opcode)));
      expect_refusal(opcode, spoil);
    }
  }
  template <typename Spoil>
  void expect_refusal(Opcode opcode, Spoil spoil) {
    this->in_each_mode([&](Pair& pair) {
      Transfer& ledger = pair.transfer(pair.left, {500, 700, 300}, opcode);
      Region other(*pair.right.rail, 10'000, kRemoteWrite | kRemoteRead);
      Work bad = ledger.works()[1];
      spoil(bad, ledger, other);
      const Problems problems = refusal_problems(pair, ledger, bad);
      for (const std::string& problem : problems) ADD_FAILURE() << problem;
      ASSERT_TRUE(problems.empty()) << this->failures_of(pair);
      EXPECT_TRUE(other.untouched());
    });
  }
};
TYPED_TEST_SUITE(RailAccess, AllRails, RailName);

TYPED_TEST(RailAccess, AKeyThatWasNeverGivenOut) {
  for (const uint64_t key : {uint64_t{0}, UINT64_MAX, uint64_t{0x123456789abcdef}}) {
    this->expect_refusal([&](Work& bad, Transfer&, Region&) { bad.remote_key = key; });
  }
  for (int bit = 0; bit < 64; bit += 9) {
    this->expect_refusal(
        [&](Work& bad, Transfer&, Region&) { bad.remote_key ^= uint64_t{1} << bit; });
  }
}

TYPED_TEST(RailAccess, TheKeyOfARegionThatIsGone) {
  this->expect_refusal([&](Work& bad, Transfer&, Region& other) {
    other.aim(&bad, other.address());
    bad.remote_key = other.keys().remote;
    other.deregister();
  });
}

TYPED_TEST(RailAccess, TheKeyOfAnotherRegion) {
  // An offset that fits the other region names a place in it.
  if (!this->world_->properties().by_offset) {
    this->expect_refusal(
        [](Work& bad, Transfer&, Region& other) { bad.remote_key = other.keys().remote; });
  }
  this->expect_refusal([](Work& bad, Transfer& ledger, Region& other) {
    ledger.remote().aim(&bad, other.address());
  });
}

TYPED_TEST(RailAccess, OneByteBeforeTheRegion) {
  this->expect_refusal([](Work& bad, Transfer& ledger, Region&) {
    ledger.remote().aim(&bad, ledger.remote().address() - 1);
  });
}

TYPED_TEST(RailAccess, OneByteBeyondTheRegion) {
  this->expect_refusal([](Work& bad, Transfer& ledger, Region&) {
    ledger.remote().aim(&bad, ledger.remote().address() + ledger.remote().bytes().size() - 699);
  });
  this->expect_refusal([](Work& bad, Transfer& ledger, Region&) {
    ledger.remote().aim(&bad, ledger.remote().address() + ledger.remote().bytes().size());
    bad.length = 1;
  });
}

TYPED_TEST(RailAccess, AddressesThatWrapOrAreNowhere) {
  for (const uint64_t address : {uint64_t{0}, UINT64_MAX, UINT64_MAX - 698, UINT64_MAX / 2}) {
    this->expect_refusal(
        [&](Work& bad, Transfer& ledger, Region&) { ledger.remote().aim(&bad, address); });
  }
  // Far enough before the region that offset + length wraps to the inside.
  this->expect_refusal([](Work& bad, Transfer& ledger, Region&) {
    ledger.remote().aim(&bad, ledger.remote().address() - 600);
  });
}

TYPED_TEST(RailAccess, TheLastByteOfTheRegionIsStillInside) {
  this->in_each_mode([this](Pair& pair) {
    Transfer& ledger = pair.transfer(pair.left, {});
    Region target(*pair.right.rail, 64);
    Region source(*pair.left.rail, 64);
    std::ranges::fill(source.bytes(), std::byte{7});
    Work work;
    work.local = source.bytes().data();
    work.local_key = source.keys().local;
    target.aim(&work, target.address());
    work.remote_key = target.keys().remote;
    work.length = 64;
    size_t taken = 0, sent = 0, count = 0;
    ASSERT_EQ(pair.left.channel->post({&work, 1}, &taken), Status::kOk);
    ASSERT_EQ(taken, 1U);
    std::array<Done, 1> done;
    for (int i = 0; i < 1'000'000 && count == 0; ++i) {
      this->world_->pump();
      ASSERT_EQ(pair.left.channel->poll(done, &sent), Status::kOk) << this->failures_of(pair);
      ASSERT_EQ(pair.right.channel->poll(done, &count), Status::kOk) << this->failures_of(pair);
    }
    EXPECT_EQ(count, 1U);
    EXPECT_TRUE(std::ranges::equal(target.bytes(), source.bytes()));
    EXPECT_TRUE(target.guards_intact());
    EXPECT_TRUE(ledger.problems().empty());
    pair.left.channel.reset();  // before the memory of this test goes
    pair.right.channel.reset();
  });
}

TYPED_TEST(RailAccess, ALocalPlaceOutsideRegisteredMemoryIsNotTouched) {
  for (const Opcode opcode : this->opcodes())
    for (const bool wrong_key : {true, false}) {
      this->in_each_mode([&](Pair& pair) {
        Transfer& ledger = pair.transfer(pair.left, {100, 100}, opcode);
        Work bad = ledger.works()[0];
        if (wrong_key) {
          bad.local_key ^= uint64_t{1} << 40;
        } else {
          bad.local = ledger.local().bytes().data() - 1;
        }
        size_t taken = 0;
        pair.left.status = pair.left.channel->post({&bad, 1}, &taken);
        ledger.took(taken);
        EXPECT_TRUE(pair.await_failure(pair.left));
        EXPECT_FALSE(pair.left.channel->failure().what.empty());
        pair.settle();
        EXPECT_EQ(ledger.arrived_count(), 0U);
        EXPECT_TRUE(ledger.target().untouched());
      });
    }
}

// A rail may check the whole batch first, or send what stands before the bad work.
TYPED_TEST(RailAccess, ThePostThatFailsSaysHowManyWorksItTook) {
  this->in_each_mode([&](Pair& pair) {
    Transfer& ledger = pair.transfer(pair.left, {100, 200, 300, 400});
    std::vector<Work> works(ledger.works().begin(), ledger.works().end());
    works[2].local_key ^= uint64_t{1} << 40;
    size_t taken = 9;
    pair.left.status = pair.left.channel->post(works, &taken);
    EXPECT_NE(pair.left.status, Status::kOk);
    ASSERT_LE(taken, 2U);
    ledger.took(taken);
    EXPECT_TRUE(pair.await_failure(pair.left));
    pair.settle();
    EXPECT_EQ(ledger.sent_count(), 0U);
    for (size_t i = taken; i < works.size(); ++i) EXPECT_TRUE(ledger.untouched(i)) << i;
    size_t more = 9;
    EXPECT_NE(pair.left.channel->post(ledger.works().first(1), &more), Status::kOk);
    EXPECT_EQ(more, 0U);
    for (const std::string& problem : ledger.problems()) ADD_FAILURE() << problem;
  });
}

TYPED_TEST(RailAccess, DeregisteredMemoryStaysAsItIs) {
  for (int rounds = 5; rounds <= 40; rounds += 7) {
    this->in_each_mode([&](Pair& pair) {
      Transfer& ledger = pair.transfer(pair.left, std::vector<uint32_t>(220, 3'000));
      for (int i = 0; i < rounds; ++i) {
        pair.post(pair.left, 5);
        pair.poll(pair.left, 4);
        if (i % 2 != 0) pair.poll(pair.right, 3);
        this->world_->pump();
      }
      ledger.target().deregister();
      const std::vector<std::byte> before = ledger.target().copy();
      if (pair.goes_on_after_refusal(Opcode::kWriteWithImmediate)) {
        EXPECT_TRUE(pair.run()) << this->failures_of(pair);
        EXPECT_GT(ledger.refused_count(), 0U);
      } else {
        EXPECT_FALSE(pair.run()) << "all works arrived after their memory was deregistered";
        EXPECT_TRUE(pair.await_failure(pair.right));
      }
      pair.settle();
      EXPECT_TRUE(ledger.target().copy() == before) << "written after deregister_memory returned";
      for (const std::string& problem : ledger.problems()) ADD_FAILURE() << problem;
    });
  }
}

TYPED_TEST(RailAccess, TheSameRangeTwiceHasIndependentKeys) {
  this->in_each_mode([this](Pair& pair) {
    Transfer& first = pair.transfer(pair.left, {400, 400, 400});
    auto again = pair.right.rail->register_memory(
        {first.target().bytes().data(), first.target().bytes().size()});
    ASSERT_TRUE(again) << again.error().what;
    EXPECT_NE(again->remote, first.target().keys().remote);
    std::vector<Work> works(first.works().begin(), first.works().end());
    const Work stale = works[1];
    for (Work& work : works) work.remote_key = again->remote;
    first.target().deregister();
    size_t taken = 0;
    ASSERT_EQ(pair.left.channel->post({works.data(), 1}, &taken), Status::kOk);
    first.took(taken);
    ASSERT_EQ(taken, 1U);
    EXPECT_TRUE(pair.await_arrival(first, 0))
        << "one key stopped working with the other" << this->failures_of(pair);
    ASSERT_EQ(pair.left.channel->post({&stale, 1}, &taken), Status::kOk);
    first.took(taken);
    if (pair.goes_on_after_refusal(Opcode::kWriteWithImmediate)) {
      EXPECT_TRUE(pair.await_end(first, 1) && first.was_refused(1));
    } else {
      EXPECT_TRUE(pair.await_failure(pair.right)) << "the deregistered key still works";
    }
    pair.settle();
    EXPECT_TRUE(first.untouched(1));
    for (const std::string& problem : first.problems()) ADD_FAILURE() << problem;
    pair.left.channel.reset();
    pair.right.channel.reset();
    pair.right.rail->deregister_memory(*again);
  });
}

TYPED_TEST(RailAccess, KeysAreUniqueWhileTheyLive) {
  std::mt19937 random(11);
  std::vector<std::byte> memory(1 << 16);
  std::set<uint64_t> remote;
  std::vector<MemoryKeys> live;
  Rail& rail = this->world_->left();
  for (int i = 0; i < 2'000; ++i) {
    if (!live.empty() && random() % 2 == 0) {
      std::swap(live[random() % live.size()], live.back());
      rail.deregister_memory(live.back());
      live.pop_back();
      continue;
    }
    const size_t offset = random() % 1000;
    auto keys = rail.register_memory({&memory[offset], 1 + random() % 60'000});
    ASSERT_TRUE(keys) << keys.error().what;
    EXPECT_TRUE(remote.insert(keys->remote).second) << "a key was used again";
    live.push_back(*keys);
  }
  for (const MemoryKeys& keys : live) rail.deregister_memory(keys);
  EXPECT_EQ(this->world_->violations(), 0U);
}

TYPED_TEST(RailAccess, WhatCannotBeRegisteredIsRefusedInWords) {
  Rail& rail = this->world_->left();
  std::byte byte{};
  const uint32_t kinds = rail.caps().memory_kinds;
  EXPECT_NE(kinds & static_cast<uint32_t>(MemoryKind::kHost), 0U);
  std::vector<Result<MemoryKeys>> results = {
      rail.register_memory({nullptr, 100}),
      rail.register_memory({&byte, 0}),
      rail.register_memory({&byte, SIZE_MAX}),
  };
  if ((kinds & static_cast<uint32_t>(MemoryKind::kCuda)) == 0) {
    results.push_back(rail.register_memory({&byte, 1, MemoryKind::kCuda}));
    EXPECT_EQ(results.back() ? Status::kOk : results.back().error().status, Status::kUnsupported);
  }
  if (!rail.caps().dma_buf) {
    results.push_back(rail.register_memory({&byte, 1, MemoryKind::kHost, 0}));
    EXPECT_EQ(results.back() ? Status::kOk : results.back().error().status, Status::kUnsupported);
  }
  for (const auto& result : results) {
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().what.find(rail.caps().name), std::string::npos) << result.error().what;
  }
}

}  // namespace
}  // namespace slime::contract
