// SAP/2's slot machine under every order of loss, duplication and reordering within the bounds.
// SLIME_MODEL=full widens them (make model-check).
#include "test/model/slot_model.h"

#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace slime::model {
namespace {

bool full() {
  const char* mode = std::getenv("SLIME_MODEL");
  return mode && std::string(mode) == "full";
}

Report check(const char* name, const Rules& rules, const Bounds& bounds) {
  Report report = explore(SlotModel(rules, bounds), uint64_t{50} << 20);
  std::printf("  %-36s %9" PRIu64 " states %8" PRIu64 " ends %6" PRIu64 " wedged %7.2f s  %s\n",
              name, report.states, report.finished, report.wedged, report.seconds,
              !report.violation.empty() ? report.violation.c_str()
              : report.exhausted        ? ""
                                        : "NOT EXHAUSTED");
  std::fflush(stdout);
  return report;
}

// Right in every state, and the end is always within reach.
void expect_sound(const char* name, const Rules& rules, const Bounds& bounds) {
  const Report report = check(name, rules, bounds);
  EXPECT_EQ(report.violation, "") << report.way;
  EXPECT_TRUE(report.exhausted);
  EXPECT_EQ(report.wedged, 0u) << report.way;
  EXPECT_GT(report.finished, 0u);
}

void expect_wrong(const char* name, const Rules& rules, const Bounds& bounds) {
  EXPECT_NE(check(name, rules, bounds).violation, "") << "the checker does not see this mutant";
}

void expect_wedged(const char* name, const Rules& rules, const Bounds& bounds) {
  const Report report = check(name, rules, bounds);
  EXPECT_EQ(report.violation, "");
  EXPECT_GT(report.wedged, 0u) << "the checker does not see this mutant";
}

const RealRules<8> kReal;
const Bounds kWrapAndFence{
    .leaves = {2}, .rounds = 8, .capacity = 1, .capacity_down = 1, .fence = true, .life = 3};

TEST(SlotModel, OneSwitch) {
  expect_sound("2 workers, 3 rounds", kReal, {.leaves = {2}, .rounds = 3});
  expect_sound("2 workers, 4 rounds, 1 on the way", kReal,
               {.leaves = {2}, .rounds = 4, .capacity = 1});
  expect_sound("3 workers, 2 rounds, 1 on the way", kReal,
               {.leaves = {3}, .rounds = 2, .capacity = 1});
  expect_sound("1 worker, 4 rounds", kReal, {.leaves = {1}, .rounds = 4});
}

TEST(SlotModel, OneSwitchWithDuplication) {
  expect_sound("2 workers, 3 rounds, duplicates", kReal,
               {.leaves = {2}, .rounds = 3, .duplicates = true});
}

TEST(SlotModel, Tree) {
  expect_sound("leaves of 1 and 1, 3 rounds", kReal,
               {.leaves = {1, 1}, .rounds = 3, .capacity = 1});
  expect_sound("leaves of 2 and 1, 2 rounds", kReal,
               {.leaves = {2, 1}, .rounds = 2, .capacity = 1});
}

// Forged and damaged packets add no state.
TEST(SlotModel, ForgedAndDamagedPackets) {
  const Bounds quiet{.leaves = {2}, .rounds = 3};
  Bounds hostile = quiet;
  hostile.forger = hostile.damage = true;
  expect_sound("2 workers, 3 rounds, forger, damage", kReal, hostile);
  EXPECT_EQ(explore(SlotModel(kReal, hostile), 1u << 20).states,
            explore(SlotModel(kReal, quiet), 1u << 20).states);
  expect_sound("leaves of 2 and 1, forger, damage", kReal,
               {.leaves = {2, 1}, .rounds = 2, .capacity = 1, .forger = true, .damage = true});
}

TEST(SlotModel, Generations) {
  for (const bool renumber : {false, true}) {
    expect_sound("2 workers, 3 rounds, a fence", kReal,
                 {.leaves = {2}, .rounds = 3, .capacity = 1, .fence = true, .renumber = renumber});
    expect_sound(
        "leaves of 1 and 1, 2 rounds, a fence", kReal,
        {.leaves = {1, 1}, .rounds = 2, .capacity = 1, .fence = true, .renumber = renumber});
  }
}

// An epoch of k bits is safe as long as the network has lost every packet that is 2^(k-1) + 2
// rounds old; a round shares its half only with rounds an even distance away.
TEST(SlotModel, EpochsThatWrap) {
  const RealRules<3> three;
  const Bounds bounds{.leaves = {2}, .rounds = 8, .capacity_down = 1, .life = 5};
  expect_sound("3-bit epochs, 8 rounds, life 5", three, bounds);
  Bounds longer = bounds;
  longer.life = 6;
  const Report report = check("3-bit epochs, 8 rounds, life 6", three, longer);
  EXPECT_TRUE(!report.violation.empty() || report.wedged > 0);
}

// Another design of the same state space, done before this one in another language, counted these.
TEST(SlotModel, CountsWhatAnEarlierModelCounted) {
  const auto states = [](const char* name, const Rules& rules, const Bounds& bounds) {
    const Report report = check(name, rules, bounds);
    EXPECT_EQ(report.violation, "");
    return report.states;
  };
  EXPECT_EQ(states("2 workers, 4 rounds, 2 retries", kReal,
                   {.leaves = {2}, .rounds = 4, .capacity = 3, .retries = 2, .ordered = true}),
            88'966u);
  EXPECT_EQ(states("3 workers, 3 rounds, 1 retry", kReal,
                   {.leaves = {3}, .rounds = 3, .capacity = 3, .retries = 1, .ordered = true}),
            55'870u);
  EXPECT_EQ(states("leaves of 1 and 1, 3 rounds, 1 retry", kReal,
                   {.leaves = {1, 1}, .rounds = 3, .retries = 1}),
            15'988u);
  EXPECT_EQ(states("leaves of 2 and 1, 2 rounds, 1 retry", kReal,
                   {.leaves = {2, 1}, .rounds = 2, .retries = 1}),
            98'712u);
}

// A generation may begin anywhere on the circle.
TEST(SlotModel, GenerationsOfEpochsThatWrap) {
  const RealRules<3> three;
  expect_sound("3-bit epochs, 8 rounds, a fence", three, kWrapAndFence);
}

TEST(SlotModel, NextRoundOnly) {
  const NextRoundOnly<8> strict;
  expect_sound("next round only, 2 workers, 3 rounds", strict,
               {.leaves = {2}, .rounds = 3, .duplicates = true});
  expect_sound("next round only, a tree", strict, {.leaves = {2, 1}, .rounds = 2, .capacity = 1});
  expect_sound("next round only, a fence", strict,
               {.leaves = {2}, .rounds = 3, .capacity = 1, .fence = true});
  const NextRoundOnly<3> three;
  expect_sound("next round only, 3-bit epochs, a fence", three, kWrapAndFence);
}

TEST(SlotModelMutant, FreshAtZeroWedges) {
  const FreshAtZero mutant;
  expect_wedged("generations begin at round 0", mutant, kWrapAndFence);
}

TEST(SlotModelMutant, WithoutStaleGuardWedges) {
  const WithoutStaleGuard mutant;
  expect_wedged("no stale guard", mutant, {.leaves = {2}, .rounds = 3});
}

TEST(SlotModelMutant, WithoutDedupFoldsTwice) {
  const WithoutDedup mutant;
  expect_wrong("no dedup", mutant, {.leaves = {2}, .rounds = 2});
}

TEST(SlotModelMutant, WithoutParentEpochMixesRounds) {
  const WithoutParentEpoch mutant;
  expect_wrong("parent's result of any round", mutant, {.leaves = {1, 1}, .rounds = 3});
}

TEST(SlotModelMutant, WithoutGenerationMixesGenerations) {
  const WithoutGeneration mutant;
  expect_wrong("no generation", mutant,
               {.leaves = {2}, .rounds = 3, .capacity = 1, .fence = true, .renumber = true});
}

TEST(SlotModelMutant, WithoutTokenTakesForgedPackets) {
  const WithoutToken mutant;
  expect_wrong("no token", mutant, {.leaves = {2}, .rounds = 2, .forger = true});
  expect_wrong("no token, a tree", mutant, {.leaves = {1, 1}, .rounds = 2, .forger = true});
}

TEST(SlotModelMutant, OneCopyTrustedTakesDamagedResults) {
  const OneCopyTrusted mutant;
  expect_wrong("one copy trusted", mutant, {.leaves = {2}, .rounds = 2, .damage = true});
}

TEST(SlotModelMutant, WindowBeyondTheRing) {
  const WindowBeyondRing mutant;
  const Report report = check("window beyond the ring", mutant, {.leaves = {2}, .rounds = 3});
  EXPECT_TRUE(!report.violation.empty() || report.wedged > 0)
      << "the checker does not see this mutant";
}

TEST(SlotModelMutant, ClearBitForEpoch) {
  const ClearBitForEpoch mutant;
  expect_wrong("a bit cleared, no epoch", mutant, {.leaves = {2}, .rounds = 3});
}

// Minutes and gigabytes.
TEST(SlotModelFull, WiderBounds) {
  if (!full()) GTEST_SKIP() << "SLIME_MODEL=full is not set (make model-check sets it)";
  expect_sound("2 workers, 4 rounds", kReal, {.leaves = {2}, .rounds = 4});
  expect_sound("3 workers, 3 rounds, 1 on the way", kReal,
               {.leaves = {3}, .rounds = 3, .capacity = 1});
  expect_sound("3 workers, 2 rounds", kReal, {.leaves = {3}, .rounds = 2});
  expect_sound("leaves of 1 and 1, 2 rounds", kReal, {.leaves = {1, 1}, .rounds = 2});
  expect_sound("leaves of 2 and 1, 3 rounds, 1 on way", kReal,
               {.leaves = {2, 1}, .rounds = 3, .capacity = 1});
  const RealRules<4> four;
  expect_sound("4-bit epochs, 18 rounds, life 9", four,
               {.leaves = {2}, .rounds = 18, .capacity_down = 1, .life = 9});
}

}  // namespace
}  // namespace slime::model
