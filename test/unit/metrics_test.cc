#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "transports/rail_counters.h"

namespace slime {
namespace {

TEST(Metrics, CounterAddsAndRaises) {
  Counter counter;
  counter.add();
  counter.add(41);
  EXPECT_EQ(counter.get(), 42u);
  counter.raise_to(40);
  EXPECT_EQ(counter.get(), 42u);
  counter.raise_to(43);
  EXPECT_EQ(counter.get(), 43u);
}

TEST(Metrics, SnapshotCopiesEveryCounter) {
  RailCounters counters;
  uint64_t next = 1;
#define SLIME_FIELD(name, help) counters.name.add(next++);
  SLIME_RAIL_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
  const RailTotals totals = snapshot(counters);
  uint64_t expected = 1;
#define SLIME_FIELD(name, help) EXPECT_EQ(totals.name, expected++) << #name;
  SLIME_RAIL_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
}

TEST(Metrics, TotalsSumButKeepTheDeepestQueue) {
  RailTotals one, other;
  one.works = 3;
  one.queue_depth_max = 8;
  other.works = 4;
  other.bytes_sent = 100;
  other.queue_depth_max = 5;
  one.add(other);
  EXPECT_EQ(one.works, 7u);
  EXPECT_EQ(one.bytes_sent, 100u);
  EXPECT_EQ(one.queue_depth_max, 8u);
  other.queue_depth_max = 9;
  one.add(other);
  EXPECT_EQ(one.queue_depth_max, 9u);
}

TEST(Metrics, CountersOfTwoRailsShareNoCacheLine) {
  EXPECT_EQ(alignof(RailCounters), 64u);
  EXPECT_EQ(sizeof(RailCounters) % 64, 0u);
}

TEST(Metrics, AReaderSeesACounterGrow) {
  constexpr uint64_t kAdds = 200000;
  RailCounters counters;
  std::thread writer([&] {
    for (uint64_t i = 0; i < kAdds; ++i) counters.works.add();
  });
  uint64_t last = 0;
  bool grew_only = true;
  while (last < kAdds && grew_only) {
    const uint64_t seen = snapshot(counters).works;
    grew_only = seen >= last;
    last = seen;
  }
  writer.join();
  EXPECT_TRUE(grew_only);
  EXPECT_EQ(snapshot(counters).works, kAdds);
}

}  // namespace
}  // namespace slime
