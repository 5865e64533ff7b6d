// The experiment that the posting rules come from, on simulated rails: 4 rails of 100 Gb/s, 64 KiB
// works, 256 places each, one thread. Where the wire is the limit, places come back one at a time:
// a poster that waits for none rings once per work, one that waits for W places once per W.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "test/support/sim/sim_rail.h"

namespace slime {
namespace {

constexpr uint32_t kDepth = 256;
constexpr uint32_t kBytes = 65'536;

// When to post, and how many works share a doorbell.
struct Rule {
  uint32_t watermark = 1;
  uint32_t chain = kDepth;
};

class Lane {
 public:
  Lane(sim::Network& network, const sim::CallCosts& costs) {
    RailCaps caps;
    caps.max_batch = kDepth;
    caps.arrives_unpolled = true;
    sim::RailModel model;
    peer_rail_ = network.open_rail(caps, model);  // another machine: costs this clock nothing
    model.costs = costs;
    rail_ = network.open_rail(caps, model);
    channel_ = *rail_->open_channel({true, false});
    peer_ = *peer_rail_->open_channel({false, false});
    EXPECT_EQ(channel_->connect(peer_->address()), Status::kAgain);
    EXPECT_EQ(peer_->connect(channel_->address()), Status::kOk);
    EXPECT_EQ(channel_->connect(peer_->address()), Status::kOk);
    Work work;
    work.local = source_.data();
    work.local_key = rail_->register_memory({source_.data(), kBytes})->local;
    work.remote_address = reinterpret_cast<uint64_t>(target_.data());
    work.remote_key = peer_rail_->register_memory({target_.data(), kBytes})->remote;
    work.length = kBytes;
    batch_.assign(kDepth, work);
  }

  // One visit: poll, and post if enough places are free. Returns the works that were sent.
  size_t visit(const Rule& rule) {
    Done done[64];
    size_t count = 0, sent = 0;
    EXPECT_EQ(channel_->poll(done, &sent), Status::kOk);
    credits_ += sent;
    for (bool due = credits_ >= rule.watermark; due && credits_ > 0; credits_ -= count) {
      const size_t chain = std::min<size_t>(credits_, rule.chain);
      EXPECT_EQ(channel_->post({batch_.data(), chain}, &count), Status::kOk);
      EXPECT_EQ(count, chain);
    }
    do {
      EXPECT_EQ(peer_->poll(done, &count), Status::kOk);
    } while (count > 0);
    return sent;
  }
  RailTotals totals() const { return snapshot(channel_->counters); }

 private:
  std::unique_ptr<sim::Rail> rail_, peer_rail_;
  std::unique_ptr<Channel> channel_, peer_;
  std::vector<std::byte> source_ = std::vector<std::byte>(kBytes);
  std::vector<std::byte> target_ = std::vector<std::byte>(kBytes);
  std::vector<Work> batch_;
  size_t credits_ = kDepth;
};

struct PostingResult {
  double doorbells_per_work = 0;
  double share_of_line = 0;
};

uint64_t visit_until_sent(std::deque<Lane>& lanes, const Rule& rule, uint64_t works) {
  uint64_t sent = 0;
  while (sent < works) {
    for (Lane& lane : lanes) sent += lane.visit(rule);
  }
  return sent;
}

RailTotals totals_of(const std::deque<Lane>& lanes) {
  RailTotals totals;
  for (const Lane& lane : lanes) totals.add(lane.totals());
  return totals;
}

// Measured once the queues are full: the first fill is one doorbell of 256 works.
PostingResult measure(const sim::CallCosts& costs, const Rule& rule) {
  sim::Network network(1);
  network.check_sources(false);
  std::deque<Lane> lanes;
  for (int i = 0; i < 4; ++i) lanes.emplace_back(network, costs);
  visit_until_sent(lanes, rule, 4 * kDepth);
  const RailTotals before = totals_of(lanes);
  const uint64_t start_ns = network.now_ns();
  const uint64_t sent = visit_until_sent(lanes, rule, 12'000);
  const RailTotals after = totals_of(lanes);
  EXPECT_EQ(after.futile_posts, 0U);
  EXPECT_EQ(network.violations().total(), 0U);
  const auto bits = static_cast<double>(sent) * kBytes * 8;
  return {static_cast<double>(after.doorbells - before.doorbells) /
              static_cast<double>(after.works - before.works),
          bits / static_cast<double>(network.now_ns() - start_ns) / 400};
}

TEST(SimPosting, WhereTheWireIsTheLimitAWatermarkCutsTheDoorbells) {
  for (const sim::CallCosts& costs : {sim::CallCosts{250, 150, 100, 100}, {120, 300, 60, 40}}) {
    const PostingResult eager = measure(costs, {1});
    const PostingResult sixteen = measure(costs, {16});
    const PostingResult thirty_two = measure(costs, {32});
    EXPECT_NEAR(eager.doorbells_per_work, 1.0, 0.06);
    EXPECT_NEAR(sixteen.doorbells_per_work, 0.063, 0.003);
    EXPECT_NEAR(thirty_two.doorbells_per_work, 0.032, 0.002);
    for (const PostingResult& each : {eager, sixteen, thirty_two}) {
      EXPECT_GT(each.share_of_line, 0.99);
      EXPECT_LT(each.share_of_line, 1.001);
    }
  }
}

// Four rails need a work every 1311 ns. One doorbell for each work costs 900 + 600 and polls;
// shared by 16 it costs 900 + 38 and polls.
TEST(SimPosting, WhereTheProcessorIsTheLimitChainsBringTheLineRateBack) {
  const sim::CallCosts costs{900, 600, 600, 100};
  const PostingResult single = measure(costs, {1, 1});
  EXPECT_EQ(single.doorbells_per_work, 1.0);
  EXPECT_LT(single.share_of_line, 1311.0 / 1500);
  EXPECT_GT(single.share_of_line, 1311.0 / 1700);
  EXPECT_GT(measure(costs, {16}).share_of_line, 0.99);
}

}  // namespace
}  // namespace slime
