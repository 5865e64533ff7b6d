// Which ranks are below which switch, and how those that are missing are named.
#include "collnet/worker/branches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace slime {
namespace {

using testing::HasSubstr;

SocketAddress control(uint32_t number) {
  return SocketAddress::parse("10.0.0." + std::to_string(number + 1) + ":28900").value();
}

std::vector<SocketAddress> controls(const std::vector<uint32_t>& of_rank) {
  std::vector<SocketAddress> all;
  for (const uint32_t number : of_rank) all.push_back(control(number));
  return all;
}

TEST(Branches, AreInTheOrderOfTheirLowestRanks) {
  const auto branches = branches_of(controls({4, 2, 4, 2, 2, 0}));
  ASSERT_EQ(branches.size(), 3u);
  EXPECT_EQ(branches[0].control, control(4));
  EXPECT_EQ(branches[0].ranks, (std::vector<uint32_t>{0, 2}));
  EXPECT_EQ(branches[1].ranks, (std::vector<uint32_t>{1, 3, 4}));
  EXPECT_EQ(branches[2].ranks, (std::vector<uint32_t>{5}));
}

TEST(Branches, ThirtyTwoOfThirtyTwoAreTheMost) {
  std::vector<uint32_t> of_rank;
  for (uint32_t rank = 0; rank < 1024; ++rank) of_rank.push_back(rank / 32);
  EXPECT_TRUE(check_branches(branches_of(controls(of_rank))));
  of_rank.push_back(0);
  const auto full = check_branches(branches_of(controls(of_rank)));
  ASSERT_FALSE(full);
  EXPECT_THAT(full.error().what, HasSubstr("33 ranks name the switch at 10.0.0.1:28900"));
  of_rank.back() = 32;
  const auto wide = check_branches(branches_of(controls(of_rank)));
  ASSERT_FALSE(wide);
  EXPECT_THAT(wide.error().what, HasSubstr("33 switches"));
}

TEST(Branches, NameTheRanksThatAreMissing) {
  std::vector<uint32_t> ranks = {8, 9, 10, 20, 21, 40};
  EXPECT_EQ(ranks_without(ranks, 0), "8-10, 20, 21, 40");
  EXPECT_EQ(ranks_without(ranks, 0b000010), "8, 10, 20, 21, 40");
  EXPECT_EQ(ranks_without(ranks, 0b011111), "40");
  EXPECT_EQ(ranks_without(ranks, 0b111111), "");
  ranks.resize(32);
  std::iota(ranks.begin(), ranks.end(), 96);
  EXPECT_EQ(ranks_without(ranks, 0), "96-127");
  EXPECT_EQ(ranks_without(ranks, 0x7fffffff), "127");
}

}  // namespace
}  // namespace slime
