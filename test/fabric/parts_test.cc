// Parts of a libfabric channel by themselves: what has arrived, and what was refused silently.
#include "test/fabric/support.h"
#include "transports/fabric/arrivals.h"

namespace slime::fabric {
namespace {

std::vector<uint32_t> immediates_of(Arrivals& arrivals, RailCounters& counters, size_t room) {
  std::vector<Done> done(room);
  size_t count = 0;
  arrivals.take(done, &count, counters);
  std::vector<uint32_t> immediates;
  for (const Done& one : std::span(done).first(count)) immediates.push_back(one.immediate);
  return immediates;
}

TEST(FabricArrivals, AreReturnedInTheirOrderAndConfirmedToAPeerThatWantsIt) {
  Arrivals arrivals(8);
  RailCounters counters;
  arrivals.confirm_to_peer();
  for (const uint32_t immediate : {5u, 6u, 7u}) arrivals.add(immediate, 100);
  EXPECT_THAT(immediates_of(arrivals, counters, 2), ElementsAre(5, 6));
  EXPECT_EQ(arrivals.kept(), 1u);
  EXPECT_THAT(immediates_of(arrivals, counters, 2), ElementsAre(7));
  EXPECT_THAT(arrivals.to_confirm(), ElementsAre(5, 6, 7));
  EXPECT_EQ(counters.bytes_received.get(), 300u);
}

TEST(FabricArrivals, CancelledOnesAreDroppedOnceEach) {
  Arrivals arrivals(2);
  RailCounters counters;
  const std::vector<uint32_t> cancelled = {6, 6}, more = {7};
  EXPECT_TRUE(arrivals.cancel(cancelled));
  EXPECT_FALSE(arrivals.cancel(more)) << "more than the peer can have under way";
  for (const uint32_t immediate : {6u, 7u, 6u, 6u}) arrivals.add(immediate, 0);
  EXPECT_THAT(immediates_of(arrivals, counters, 4), ElementsAre(7, 6));
  EXPECT_THAT(arrivals.to_confirm(), IsEmpty());
  EXPECT_EQ(counters.arrivals.get(), 2u);
}

TEST(FabricRefusals, ACountIsReportedOnceWhenNothingMoreCompletes) {
  RefusalWatch watch;
  uint64_t now_ns = 1;
  const auto look = [&](uint64_t completed) {
    now_ns += RefusalWatch::kReportPauseNs;
    return watch.count_to_report(completed, now_ns);
  };
  EXPECT_EQ(look(3), std::nullopt);
  EXPECT_EQ(look(4), std::nullopt) << "one has completed meanwhile";
  EXPECT_EQ(look(4), 4u);
  EXPECT_EQ(look(4), std::nullopt);
}

TEST(FabricRefusals, WhatDoesNotArriveWithinSixteenReadsWasRefused) {
  RefusalWatch watch;
  watch.peer_completed(5);
  for (uint32_t i = 1; i < RefusalWatch::kEmptyReads; ++i) watch.read_nothing();
  EXPECT_EQ(watch.refused(3), 0u);
  watch.read_nothing();
  EXPECT_EQ(watch.refused(3), 2u);
  EXPECT_EQ(watch.refused(5), 0u);
  watch.peer_completed(6);
  EXPECT_EQ(watch.refused(5), 0u) << "its reads count anew";
}

}  // namespace
}  // namespace slime::fabric
