// The linear check against a switch that adds right, and against every fault it is meant to catch.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "test/collnet/number/support.h"

namespace slime::sap {
namespace {

using number::test::add_payload;
using number::test::Bytes;
using number::test::Random;
using number::test::random_bytes;
using number::test::seed_or;

constexpr uint32_t kWords = 64;

struct Contribution {
  Bytes payload;
  uint32_t check = 0;
};

// A round of n workers, its sum as the switch computes it, and the number of each fault missed.
class CheckTest : public testing::TestWithParam<Format> {
 protected:
  void begin(uint32_t workers) {
    header_ = {.job = static_cast<uint16_t>(random_()),
               .generation = static_cast<uint8_t>(random_()),
               .token = static_cast<uint32_t>(random_()),
               .slot = static_cast<uint16_t>(random_()),
               .epoch = static_cast<uint32_t>(random_()),
               .cookie = static_cast<uint32_t>(random_())};
    all_.clear();
    sum_ = {Bytes(4 * kWords), 0};
    for (uint32_t i = 0; i < workers; ++i) {
      all_.push_back({random_bytes(random_, 4 * kWords), 0});
      all_[i].check = check_of(GetParam(), all_[i].payload, factor(i) * salt(header_));
      add(all_[i]);
    }
  }
  void add(const Contribution& one) {
    add_payload(GetParam(), sum_.payload, one.payload);
    sum_.check += one.check;
  }
  bool accepted() const {
    const auto workers = static_cast<uint32_t>(all_.size());
    return verifies(GetParam(), sum_.payload, sum_.check, salt(header_), all_ranks(workers));
  }
  size_t pick(size_t below) { return random_() % below; }

  const uint64_t seed_ = seed_or(20240611);
  Random random_{seed_};
  testing::ScopedTrace trace_{__FILE__, __LINE__, "SLIME_SEED=" + std::to_string(seed_)};
  Header header_;
  std::vector<Contribution> all_;
  Contribution sum_;
};

TEST_P(CheckTest, AcceptsEverySumOfAllWorkers) {
  for (uint32_t workers = 1; workers <= 255; workers += workers < 33 ? 1 : 37) {
    for (int trial = 0; trial < 8; ++trial) {
      begin(workers);
      ASSERT_TRUE(accepted()) << workers;
    }
  }
}

TEST_P(CheckTest, CatchesAFlippedBit) {
  for (const uint32_t workers : {1, 2, 8, 32}) {
    begin(workers);
    for (size_t bit = 0; bit < 32 * kWords; ++bit) {
      const auto mask = static_cast<std::byte>(1 << bit % 8);
      sum_.payload[bit / 8] ^= mask;
      EXPECT_FALSE(accepted()) << workers << " workers, bit " << bit;
      sum_.payload[bit / 8] ^= mask;
    }
    for (uint32_t bit = 0; bit < 32; ++bit) {
      sum_.check ^= 1u << bit;
      // The lowest bits of a 64-bit format's check leave room for carries.
      if (width_of(GetParam()) < 64 || bit >= 5) {
        EXPECT_FALSE(accepted()) << workers << " workers, bit " << bit << " of the check";
      }
      sum_.check ^= 1u << bit;
    }
  }
}

TEST_P(CheckTest, CatchesMissingAndDoubledWorkers) {
  for (int trial = 0; trial < 500; ++trial) {
    begin(8);
    EXPECT_EQ(salt(header_) % 2, 1u) << "so that only a sum of factors can be 0";
    add(all_[pick(8)]);
    EXPECT_FALSE(accepted()) << "doubled";
    sum_ = {Bytes(4 * kWords), 0};
    for (size_t i = 1; i < 8; ++i) add(all_[i]);
    EXPECT_FALSE(accepted()) << "one missing";
    sum_ = {Bytes(4 * kWords), 0};
    for (size_t i = 0; i < 8; i += 2) add(all_[i]);
    EXPECT_FALSE(accepted()) << "half of them missing";
    sum_ = {Bytes(4 * kWords), 0};
    for (size_t i = 0; i < 8; ++i) add(all_[i == 3 ? 4 : i]);
    EXPECT_FALSE(accepted()) << "one in another's place";
  }
}

// Every way to count the contributions of up to four workers up to three times.
TEST_P(CheckTest, CatchesWhatWasNotCountedOnce) {
  for (uint32_t workers = 1; workers <= 4; ++workers) {
    for (uint32_t times = 0; times < 1u << 2 * workers; ++times) {  // two bits each
      begin(workers);
      sum_ = {Bytes(4 * kWords), 0};
      bool once = true;
      for (uint32_t i = 0; i < workers; ++i) {
        const uint32_t own = times >> 2 * i & 3;
        once = once && own == 1;
        for (uint32_t time = 0; time < own; ++time) add(all_[i]);
      }
      EXPECT_EQ(accepted(), once) << workers << " workers, counted " << std::hex << times;
    }
  }
}

TEST_P(CheckTest, CatchesAContributionOfAnotherRound) {
  for (int trial = 0; trial < 500; ++trial) {
    begin(8);
    const uint32_t check = sum_.check;
    const uint32_t own = factor(static_cast<uint32_t>(pick(8)));
    const auto replaced = [&](const Header& other) {
      return check + own * (salt(other) - salt(header_));
    };
    Header other = header_;
    other.epoch += trial % 2 ? 2 : static_cast<uint32_t>(1 + pick(1 << 30));
    sum_.check = replaced(other);
    EXPECT_FALSE(accepted()) << "epoch";
    other = header_;
    ++other.slot;
    sum_.check = replaced(other);
    EXPECT_FALSE(accepted()) << "slot";
    other = header_;
    --other.generation;
    sum_.check = replaced(other);
    EXPECT_FALSE(accepted()) << "generation";
    other = header_;
    other.job ^= 1;
    sum_.check = replaced(other);
    EXPECT_FALSE(accepted()) << "job";
    other = header_;
    other.token ^= 1u << pick(32);
    sum_.check = replaced(other);
    EXPECT_FALSE(accepted()) << "token";
    other = header_;
    other.cookie ^= 1u << pick(32);
    sum_.check = replaced(other);
    EXPECT_FALSE(accepted()) << "cookie";
  }
}

// One contribution damaged on its way, and the switch adds on.
TEST_P(CheckTest, CatchesDamageBeforeTheSum) {
  int missed = 0;
  constexpr int kTrials = 4000;
  for (int trial = 0; trial < kTrials; ++trial) {
    begin(4);
    add({random_bytes(random_, 4 * kWords), 0});
    missed += accepted();
  }
  // sap_check.h: once in 2^b, twice that allowed for luck, or 32 bits' worth of never.
  const uint32_t width = width_of(GetParam());
  EXPECT_LE(missed, width == 8 ? 2 * kTrials / 256 : width == 16 ? 2 : 0);
}

TEST_P(CheckTest, CatchesNumbersThatChangedPlaces) {
  begin(8);
  const size_t bytes = width_of(GetParam()) / 8, numbers = 4 * kWords / bytes;
  int missed = 0, tried = 0;
  for (int trial = 0; trial < 20'000; ++trial) {
    std::byte* one = sum_.payload.data() + bytes * pick(numbers);
    std::byte* other = sum_.payload.data() + bytes * pick(numbers);
    if (std::memcmp(one, other, bytes) == 0) continue;
    ++tried;
    std::swap_ranges(one, one + bytes, other);
    missed += accepted();
    std::swap_ranges(one, one + bytes, other);
  }
  // Weights are odd, so in narrow numbers some differences are lost.
  const uint32_t width = width_of(GetParam());
  EXPECT_LE(missed, width == 8 ? tried / 20 : width == 16 ? tried / 2000 : 0);
}

TEST_P(CheckTest, WordsAndBytesAgree) {
  begin(1);
  std::vector<uint32_t> words;
  for (uint32_t j = 0; j < kWords; ++j) words.push_back(wire::get32(sum_.payload.data() + 4 * j));
  EXPECT_EQ(check_of(GetParam(), words, 5), check_of(GetParam(), sum_.payload, 5));
  EXPECT_TRUE(verifies(GetParam(), words, sum_.check, salt(header_), all_ranks(1)));
  EXPECT_EQ(check_of(GetParam(), std::span<const uint32_t>{}, 5), 5u) << "no payload: the salt";
}

INSTANTIATE_TEST_SUITE_P(Formats, CheckTest,
                         testing::Values(Format::kI32, Format::kU32, Format::kI16, Format::kI8,
                                         Format::kU8, Format::kI64, Format::kU64),
                         [](const auto& info) {
                           return "Format" + std::to_string(static_cast<int>(info.param));
                         });

TEST(Check, WeightsAreOddAndApart) {
  std::set<uint32_t> seen;
  for (uint32_t s = 0; s < 4 * kMaxLanes; ++s) {
    EXPECT_EQ(weight(s) & 1, 1u);
    seen.insert(weight(s));
  }
  EXPECT_EQ(seen.size(), 4 * kMaxLanes);
}

// These numbers are on the wire: a worker with others is another version of the protocol.
TEST(Check, IsWhatItWas) {
  EXPECT_EQ(weight(0), 0x01fce553u);
  EXPECT_EQ(weight64(1), 0xf8c1dbd6ba5a157u);
  const Header header{.job = 3, .generation = 2, .token = 5, .slot = 17, .epoch = 7, .cookie = 9};
  EXPECT_EQ(salt(header), 0x5321d61bu);
  EXPECT_EQ(factor(0), 1u);
  EXPECT_EQ(factor(31), 0xb4a095d5u);
  EXPECT_EQ(all_ranks(4).factors, 0u - 20);  // 1 - 3 + 9 - 27
  const uint32_t words[] = {0x01020304, 0x05060708};
  EXPECT_EQ(check_of(Format::kI32, words, 1), 0x1c8c7c45u);
  EXPECT_EQ(check_of(Format::kI16, words, 1), 0x14480001u);
  EXPECT_EQ(check_of(Format::kI8, words, 1), 0x38000001u);
  EXPECT_EQ(check_of(Format::kI64, words, 1), 0x3bd0912au);
}

// A switch that does not compare shapes adds up the checks of both, and answers with the shape of
// either.
TEST(Check, NoRoundIsAcceptedWhoseWorkersDisagreeAboutItsShape) {
  const Header one{.format = Format::kI32, .op = Op::kMax, .job = 3, .token = 5, .lanes = 32};
  const auto with_shape = [&](auto change) {
    Header other = one;
    change(other);
    other.cookie = shape_digest(other);
    return other;
  };
  const Header first = with_shape([](Header&) {});
  for (const Header& other : {with_shape([](Header& h) { h.op = Op::kMin; }),
                              with_shape([](Header& h) { h.format = Format::kU32; }),
                              with_shape([](Header& h) { h.lanes = 16; }),
                              with_shape([](Header& h) { h.flags = flag::kExponentsOnly; })}) {
    const uint32_t sum = salt(first) + factor(1) * salt(other);
    EXPECT_NE(sum, all_ranks(2).factors * salt(first));
    EXPECT_NE(sum, all_ranks(2).factors * salt(other));
  }
  const Header fallback = with_shape([](Header& h) { h.flags = flag::kFallback; });
  EXPECT_EQ(salt(fallback), salt(first)) << "no part of the shape";
}

// Rounds that are no sums.
TEST(Check, CopiesAgreeUntilABitOfOneIsFlipped) {
  std::vector<std::byte> payload(16);
  for (size_t i = 0; i < 8; ++i) payload[i] = payload[i + 8] = static_cast<std::byte>(17 * i);
  EXPECT_TRUE(copies_agree(payload));
  EXPECT_EQ(first_copy(payload).size(), 8u);
  for (size_t bit = 0; bit < 128; ++bit) {
    const auto mask = static_cast<std::byte>(1 << bit % 8);
    payload[bit / 8] ^= mask;
    EXPECT_FALSE(copies_agree(payload)) << bit;
    payload[bit / 8] ^= mask;
  }
  EXPECT_FALSE(copies_agree(std::span(payload).first(12))) << "an odd number of words";
  EXPECT_TRUE(copies_agree({}));
}

// What the check is off by, divided by the salt, for every way to count the contributions of these
// ranks up to `most` times too often. A negative number: so many are missing.
std::vector<uint32_t> miscounts(uint32_t first, uint32_t end, int least, int most) {
  std::vector<uint32_t> sums{0};
  for (uint32_t rank = first; rank < end; ++rank) {
    const size_t before = sums.size();
    for (int times = least; times <= most; ++times) {
      for (size_t i = 0; times != 0 && i < before; ++i) {
        sums.push_back(sums[i] + static_cast<uint32_t>(times) * factor(rank));
      }
    }
  }
  std::ranges::sort(sums);
  return sums;
}

// All ways, in two halves: these are opposite only where both are right.
TEST(Check, FindsEveryMiscountOfAFewRanks) {
  struct Case {
    uint32_t ranks;
    int least, most;
  };
  for (const auto& [ranks, least, most] : {Case{20, -1, 2}, Case{32, -1, 0}, Case{32, 0, 1}}) {
    const auto one = miscounts(0, ranks / 2, least, most);
    auto other = miscounts(ranks / 2, ranks, least, most);
    for (uint32_t& sum : other) sum = 0 - sum;
    std::ranges::sort(other);
    std::vector<uint32_t> opposite;
    std::ranges::set_intersection(one, other, std::back_inserter(opposite));
    EXPECT_EQ(opposite, std::vector<uint32_t>{0}) << ranks << ' ' << least << ' ' << most;
  }
}

// `sum`, and `sum` with up to `most` of the factors from `first` on added or subtracted.
void add_changes(std::span<const uint32_t> factors, size_t first, uint32_t most, uint32_t sum,
                 std::vector<uint32_t>* sums) {
  sums->push_back(sum);
  for (size_t at = first; most > 0 && at < factors.size(); ++at) {
    add_changes(factors, at + 1, most - 1, sum + factors[at], sums);
    add_changes(factors, at + 1, most - 1, sum - factors[at], sums);
  }
}

// All ways to miss or double up to twice as many as `half`: no two ways to do so with half as many
// come to the same.
TEST(Check, FindsAFewMissingOrDoubledOfManyRanks) {
  struct Case {
    uint32_t ranks, half;
  };
  for (const auto& [ranks, half] : {Case{32, 4}, Case{1024, 2}}) {
    std::vector<uint32_t> factors, sums;
    for (uint32_t rank = 0; rank < ranks; ++rank) factors.push_back(factor(rank));
    add_changes(factors, 0, half, 0, &sums);
    std::ranges::sort(sums);
    EXPECT_TRUE(std::ranges::adjacent_find(sums) == sums.end()) << ranks << ' ' << half;
  }
}

TEST(Check, FindsALeafThatIsMissingOrInPlaceOfAnother) {
  for (const uint32_t ranks : {64u, 96u, 1024u}) {
    for (uint32_t leaves = 2; leaves <= 32; leaves *= 2) {
      const uint32_t below = ranks / leaves;
      std::set<uint32_t> consecutive{0}, by_turns{0};
      for (uint32_t leaf = 0; leaf < leaves; ++leaf) {
        uint32_t one = 0, other = 0;
        for (uint32_t i = 0; i < below; ++i) {
          one += factor(leaf * below + i);
          other += factor(i * leaves + leaf);
        }
        consecutive.insert(one);
        by_turns.insert(other);
      }
      EXPECT_EQ(consecutive.size(), leaves + 1) << ranks;
      EXPECT_EQ(by_turns.size(), leaves + 1) << ranks;
    }
  }
}

// By hand, from the definition.
TEST(Check, IsTheWeightedSum) {
  const uint32_t words[] = {0x01020304, 0xf5060708};
  EXPECT_EQ(check_of(Format::kU32, words, 9), weight(0) * words[0] + weight(1) * words[1] + 9);
  const uint32_t halves =
      weight(0) * 0x0102 + weight(1) * 0x0304 + weight(2) * 0xf506 + weight(3) * 0x0708;
  EXPECT_EQ(check_of(Format::kI16, words, 9), (halves << 16) + 9);
  const uint32_t bytes = weight(0) * 1 + weight(1) * 2 + weight(2) * 3 + weight(3) * 4 +
                         weight(4) * 0xf5 + weight(5) * 6 + weight(6) * 7 + weight(7) * 8;
  EXPECT_EQ(check_of(Format::kU8, words, 9), (bytes << 24) + 9);
  EXPECT_EQ(check_of(Format::kU64, words, 9),
            static_cast<uint32_t>(weight64(0) * 0x01020304f5060708 >> 32) + 9);
}

// Every bit of every number that a packet may hold, with as many carries as there may be.
TEST(Check, OneBitOf64NeverHidesBehindCarries) {
  constexpr uint32_t kMostWorkers = 1 << 14;
  for (uint32_t s = 0; s < kMaxLanes / 2; ++s) {
    for (uint32_t bit = 0; bit < 64; ++bit) {
      const uint32_t change = image_of(Format::kI64, weight64(s) << bit);
      ASSERT_GT(std::min(change, 0 - change), kMostWorkers) << s << ' ' << bit;
    }
  }
}

}  // namespace
}  // namespace slime::sap
