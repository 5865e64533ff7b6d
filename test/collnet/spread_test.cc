// How operations are cut over several switches.
#include "collnet/comm/switches.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace slime {
namespace {

using PerSwitch = Spread::PerSwitch;

uint64_t sum_of(const PerSwitch& parts) { return std::reduce(parts.begin(), parts.end()); }

TEST(Spread, OneSwitchTakesAll) {
  Spread spread(PerSwitch{1});
  EXPECT_EQ(spread.cut(17), PerSwitch{17});
  EXPECT_EQ(spread.cut(0), PerSwitch{});
  EXPECT_EQ(spread.operations(), 2u);
}

TEST(Spread, SmallOperationsTakeTurns) {
  Spread spread(PerSwitch{1, 2, 1});
  const uint32_t order[] = {0, 1, 1, 2, 0, 1, 1, 2};
  for (const uint32_t turn : order) {
    PerSwitch expected{};
    expected[turn] = 1;
    EXPECT_EQ(spread.cut(1), expected);
  }
}

TEST(Spread, IsByWeight) {
  Spread spread(PerSwitch{3, 0, 1, 64});
  EXPECT_EQ(spread.cut(68), (PerSwitch{3, 0, 1, 64}));
  EXPECT_EQ(spread.cut(68'000'000), (PerSwitch{3'000'000, 0, 1'000'000, 64'000'000}));
}

TEST(Spread, ChangesAtTheOperationThatWasAgreedOn) {
  Spread spread(PerSwitch{1, 1});
  spread.change(2, PerSwitch{0, 1});
  spread.change(3, PerSwitch{1, 0});
  EXPECT_EQ(spread.cut(10), (PerSwitch{5, 5}));
  EXPECT_EQ(spread.cut(10), (PerSwitch{5, 5}));
  EXPECT_EQ(spread.cut(10), (PerSwitch{0, 10}));
  EXPECT_EQ(spread.cut(10), (PerSwitch{10, 0}));
}

TEST(Spread, TheNewestChangeAtAnOperationCounts) {
  Spread spread(PerSwitch{1, 1});
  spread.change(0, PerSwitch{0, 1});
  spread.change(0, PerSwitch{1, 0});
  EXPECT_EQ(spread.cut(10), (PerSwitch{10, 0}));
}

// One rank hears of changes before it cuts what comes before them, the other just in time.
TEST(Spread, RanksThatAreBehindCutAlike) {
  std::mt19937 random(11);
  for (int game = 0; game < 200; ++game) {
    PerSwitch weights{1, 1, 1, 1};
    Spread behind(weights), ahead(weights);
    uint64_t chunks[40];
    for (uint64_t& one : chunks) one = random() % 100;
    std::vector<std::pair<uint64_t, PerSwitch>> changes;
    for (uint64_t first = random() % 10; first < 40; first += random() % 10) {
      for (uint64_t& weight : weights) weight = random() % 4;
      weights[random() % 8] += 1;
      changes.emplace_back(first, weights);
      behind.change(first, weights);
    }
    for (uint64_t operation = 0; operation < 40; ++operation) {
      for (const auto& [first, to] : changes) {
        if (first == operation) ahead.change(first, to);
      }
      const PerSwitch parts = ahead.cut(chunks[operation]);
      EXPECT_EQ(behind.cut(chunks[operation]), parts);
      EXPECT_EQ(sum_of(parts), chunks[operation]);
    }
  }
}

}  // namespace
}  // namespace slime
