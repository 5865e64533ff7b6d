// A million rounds in random lives of jobs, or as many as fit into the time of a test. A violation
// prints its seed, and the seed replays it:
//   SLIME_SEED=n build/test/collnet --gtest_filter=Rounds.*
// and SLIME_ROUNDS=m runs m rounds of them, from that seed on.
#include "test/collnet/simulation/rounds.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "test/support/environment.h"

namespace slime::test {
namespace {

// A sanitizer makes each many times slower.
#if defined(__SANITIZE_THREAD__)
constexpr uint64_t kRounds = 20'000;
#elif defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kRounds = 50'000;
#else
constexpr uint64_t kRounds = 1'000'000;
#endif
constexpr uint32_t kMostViolations = 10;  // enough to see a pattern

struct Totals {
  uint64_t jobs = 0, left = 0, returned = 0;
  RoundsReport all;
  uint32_t violations = 0;

  void add(uint64_t seed, const RoundsReport& report) {
    ++jobs;
    left += report.left;
    returned += report.returned;
    all.rounds += report.rounds;
    all.operations += report.operations;
    all.retransmitted += report.retransmitted;
    all.stale += report.stale;
    all.flag_rounds += report.flag_rounds;
    all.fine_rounds += report.fine_rounds;
    all.upper_rounds += report.upper_rounds;
    all.guess_rounds += report.guess_rounds;
    all.wrong_guesses += report.wrong_guesses;
    all.wrong_tokens += report.wrong_tokens;
    if (report.violation.empty()) return;
    ++violations;
    ADD_FAILURE() << "seed " << seed << ": " << report.violation << " (" << report.shape
                  << "); again with\n  SLIME_SEED=" << seed
                  << " build/test/collnet --gtest_filter=Rounds.*";
  }
};

TEST(Rounds, HoldInAnyWeather) {
  const uint64_t seed = from_environment("SLIME_SEED", 0);
  const Effort effort("SLIME_ROUNDS", seed ? 1 : kRounds);
  Totals totals;
  for (uint64_t one = seed ? seed : 1; effort.goes_on(totals.all.rounds); ++one) {
    totals.add(one, run_rounds(one));
    if (totals.violations == kMostViolations) break;
  }
  const auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
  std::printf(
      "%llu rounds in %llu jobs, %llu operations, %llu packets sent again, %llu stale results, "
      "%llu rounds of flags, %llu fine, %llu of upper words, %llu guessed, %llu of them wrong, "
      "%llu wrong tokens, %llu "
      "jobs that left their switch and %llu that returned to one, %u violations\n",
      number(totals.all.rounds), number(totals.jobs), number(totals.all.operations),
      number(totals.all.retransmitted), number(totals.all.stale), number(totals.all.flag_rounds),
      number(totals.all.fine_rounds), number(totals.all.upper_rounds),
      number(totals.all.guess_rounds), number(totals.all.wrong_guesses),
      number(totals.all.wrong_tokens), number(totals.left), number(totals.returned),
      totals.violations);
  const uint64_t rounds = totals.all.rounds;
  if (rounds < 10'000 || totals.violations > 0) return;
  // The jobs did meet what they are meant to meet.
  EXPECT_GT(totals.all.retransmitted, rounds / 100);
  EXPECT_GT(totals.all.stale, rounds / 100);
  EXPECT_GT(totals.all.flag_rounds, 0u);
  EXPECT_GT(totals.all.fine_rounds, 0u);
  EXPECT_GT(totals.all.upper_rounds, 0u);
  EXPECT_GT(totals.all.guess_rounds, totals.all.wrong_guesses);
  EXPECT_GT(totals.all.wrong_guesses, 0u);
  EXPECT_GT(totals.all.wrong_tokens, 0u);
  EXPECT_GT(totals.left, totals.jobs / 10);
  EXPECT_GT(totals.returned, 0u);
}

}  // namespace
}  // namespace slime::test
