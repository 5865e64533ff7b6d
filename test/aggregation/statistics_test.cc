// What a Context counts, and how it tells.
#include <nlohmann/json.hpp>

#include "collnet/comm/report.h"
#include "test/aggregation/support.h"
#include "test/support/local_switch.h"

namespace slime::aggregation {
namespace {

TEST(AggregationStatistics, AddUp) {
  const LocalSwitch local;
  Group group(options_for(2, local.address()));
  ASSERT_TRUE(group.well());
  Statistics before[2], after[2];
  group.each([&](Context& context, uint32_t rank) {
    before[rank] = context.statistics();
    std::vector<int32_t> data(100'000, 1);
    for (int i = 0; i < 3; ++i) {
      EXPECT_OK(context.all_reduce({data.data(), data.data(), data.size(), DataType::kInt32}));
    }
    after[rank] = context.statistics();
  });
  for (size_t rank = 0; rank < 2; ++rank) {
    const Statistics& now = after[rank];
    EXPECT_EQ(now.operations - before[rank].operations, 3u);
    EXPECT_EQ(now.bytes - before[rank].bytes, 3u * 400'000);
    EXPECT_GT(now.results, 0u);
    EXPECT_EQ(now.sent, now.results + now.retransmitted) << "nothing is under way";
    EXPECT_EQ(now.timeouts, now.retransmitted);
    EXPECT_EQ(now.corrupt + now.foreign + now.strangers, 0u);
    EXPECT_GT(now.send_calls, 0u);
    EXPECT_GE(now.sent + now.queries, now.send_calls);
    EXPECT_GT(now.round_trip_ns, 0u);
    EXPECT_FALSE(now.without_switch);
  }
  EXPECT_EQ(after[0].results, after[1].results) << "of the same rounds";
}

TEST(AggregationStatistics, AreJson) {
  const LocalSwitch local;
  Group group(options_for(2, local.address()));
  ASSERT_TRUE(group.well());
  group.each([&](Context& context, uint32_t rank) {
    float data = 1;
    EXPECT_OK(context.all_reduce({&data, &data, 1}));
    const auto json = nlohmann::json::parse(context.statistics_json(), nullptr, false);
    ASSERT_TRUE(json.is_object()) << context.statistics_json();
    EXPECT_EQ(json["name"], "CollNet on lo, rank " + std::to_string(rank) + " of 2");
    EXPECT_EQ(json["operations"], 2);
    const Statistics statistics = context.statistics();
    EXPECT_EQ(json["bytes"], statistics.bytes);
    EXPECT_EQ(json["results"], statistics.results);
    EXPECT_EQ(json["timeouts"].is_number_unsigned(), true);
#define SLIME_FIELD(name, help) EXPECT_TRUE(json.contains(#name)) << #name;
    SLIME_WORKER_COUNTERS(SLIME_FIELD)
    SLIME_UDP_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
  });
}

TEST(AggregationStatistics, AreLoggedAtTheEnd) {
  const LogCapture log;
  const LocalSwitch local;
  { Group group(options_for(2, local.address())); }
  EXPECT_EQ(LogCapture::count(LogLevel::kInfo, "rank 0 of 2: operations 1, sent "), 1u)
      << LogCapture::text();
  EXPECT_EQ(LogCapture::count(LogLevel::kInfo, "rank 1 of 2: operations 1, sent "), 1u);
}

// A rank that waits for another counts time-outs; that it asked who is missing, too.
TEST(AggregationStatistics, CountTimeouts) {
  const LogCapture log;
  const LocalSwitch local;
  Group group(options_for(2, local.address()));
  ASSERT_TRUE(group.well());
  const uint64_t before = group[0].statistics().timeouts;
  int32_t data = 1;
  Request request;
  EXPECT_OK(group[0].all_reduce_async({&data, &data, 1, DataType::kInt32}, &request));
  const auto named = [] {
    return LogCapture::count(LogLevel::kInfo, "rank 1 has not contributed for 300 ms");
  };
  for (int i = 0; i < 600 && named() == 0; ++i) {
    expect_fails(group[0].wait(request, 0.1), Code::kTimeout, "rank 0 of 2");
  }
  EXPECT_GT(group[0].statistics().timeouts, before);
  EXPECT_GT(group[0].statistics().queries, 0u);
  EXPECT_GE(named(), 1u);
}

}  // namespace
}  // namespace slime::aggregation
