// A million random lives of a link, or as many as fit into the time of a test. A violation prints
// its seed, and the seed replays it:
//   SLIME_SEED=n build/test/engine --gtest_filter=Schedules.*
// and SLIME_SCHEDULES=m runs m of them, from that seed on.
#include "test/engine/schedule/schedule.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

#include "test/support/environment.h"

namespace slime::test {
namespace {

// A sanitizer makes each many times slower.
#if defined(__SANITIZE_THREAD__)
constexpr uint64_t kSchedules = 10'000;
#elif defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kSchedules = 20'000;
#else
constexpr uint64_t kSchedules = 1'000'000;
#endif
constexpr size_t kMostViolations = 10;  // enough to see a pattern

struct Totals {
  uint64_t schedules = 0, messages = 0, eager = 0, with_death = 0, retries = 0, rejoins = 0,
           failed = 0;
  std::vector<std::string> violations;

  void add(uint64_t seed, const ScheduleReport& report) {
    ++schedules;
    messages += report.messages;
    eager += report.eager;
    with_death += report.deaths > 0;
    retries += report.retries;
    rejoins += report.rejoins;
    failed += report.failed;
    if (report.violation.empty()) return;
    violations.push_back("seed " + std::to_string(seed) + ": " + report.violation + " (" +
                         std::to_string(report.rails) + " rails, " + std::to_string(report.deaths) +
                         " made to die)");
  }
  void add(const Totals& other) {
    schedules += other.schedules;
    messages += other.messages;
    eager += other.eager;
    with_death += other.with_death;
    retries += other.retries;
    rejoins += other.rejoins;
    failed += other.failed;
    violations.insert(violations.end(), other.violations.begin(), other.violations.end());
  }
};

// Worlds share nothing, so each thread takes every n-th seed.
Totals run_schedules(uint64_t first, const Effort& effort) {
  const uint64_t threads = !effort.goes_on(1) || std::thread::hardware_concurrency() < 2 ? 1 : 2;
  Totals totals;
  std::mutex mutex;
  const auto run = [&](uint64_t offset) {
    ScheduleWorld world;
    Totals mine;
    for (uint64_t i = offset; effort.goes_on(i) && mine.violations.size() < kMostViolations;
         i += threads) {
      mine.add(first + i, world.run(first + i));
    }
    const std::lock_guard lock(mutex);
    totals.add(mine);
  };
  std::vector<std::thread> others;
  for (uint64_t t = 1; t < threads; ++t) others.emplace_back(run, t);
  run(0);
  for (std::thread& thread : others) thread.join();
  return totals;
}

TEST(Schedules, HoldWhateverTheRailsDo) {
  const uint64_t seed = from_environment("SLIME_SEED", 0);
  const Totals totals =
      run_schedules(seed ? seed : 1, Effort("SLIME_SCHEDULES", seed ? 1 : kSchedules));
  for (const std::string& violation : totals.violations) ADD_FAILURE() << violation;
  const auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
  std::printf(
      "%llu schedules, %llu messages (%llu small enough for eager), %llu with dying rails, "
      "%llu works repeated on another rail, %llu rails back, %llu links lost with their last rail, "
      "%zu violations\n",
      number(totals.schedules), number(totals.messages), number(totals.eager),
      number(totals.with_death), number(totals.retries), number(totals.rejoins),
      number(totals.failed), totals.violations.size());
  if (totals.schedules < 10'000) return;
  // The schedules did meet what they are meant to meet.
  EXPECT_GT(totals.retries, totals.schedules / 100);
  EXPECT_GT(totals.rejoins, totals.schedules / 10);
  EXPECT_GT(totals.failed, 0u);
  EXPECT_GT(totals.eager, totals.schedules);
}

}  // namespace
}  // namespace slime::test
