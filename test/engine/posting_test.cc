// The engine's promise, counted exactly: with a queue kept full, at most 0.07 doorbells per work of
// 64 KiB, no futile post, and no heap allocation once it is warm.
#include <gtest/gtest.h>

#include <cstring>

#include "test/support/heap_hooks.h"
#include "test/support/load/bare_link.h"
#include "test/support/load/comm_load.h"
#include "test/support/load/null_rail.h"
#include "test/support/sim_hosts.h"

namespace slime {
namespace {

constexpr uint32_t kWorkBytes = 64 << 10;
constexpr size_t kRails = 4;
constexpr double kMostDoorbells = 0.07;

RailCaps rail_caps() {
  RailCaps caps;
  caps.transport = "test";
  caps.speed_mbps = 100'000;
  caps.max_message_bytes = kWorkBytes;
  caps.arrives_unpolled = true;
  caps.ordered = false;
  return caps;
}

// Two hosts with simulated rails; the sender's calls cost time.
struct SimHosts {
  explicit SimHosts(uint64_t seed = 1) : network(seed) { network.check_sources(false); }
  static sim::RailModel costs() {
    sim::RailModel model;
    model.costs = {.post_ns = 250, .doorbell_ns = 150, .refused_ns = 100, .poll_ns = 100};
    model.jitter_ns = 3'000;  // the seed's part
    return model;
  }
  void charge_sender() {
    for (sim::Rail* rail : from.rails) rail->configure(rail->caps(), costs());
  }

  sim::Network network;
  test::SimHost from{network, kRails, rail_caps(), Settings(), "a"};
  test::SimHost to{network, kRails, rail_caps(), Settings(), "b"};
};

struct NullHosts {
  static std::unique_ptr<Devices> make(test::NullNetwork& network, size_t rail_count) {
    std::vector<std::unique_ptr<Rail>> rails;
    for (size_t i = 0; i < rail_count; ++i) {
      RailCaps caps = rail_caps();
      caps.name = "null." + std::to_string(i);
      rails.push_back(std::make_unique<test::NullRail>(network, caps));
    }
    return Devices::of_rails(std::move(rails), Settings(), SteadyClock::instance());
  }
  explicit NullHosts(size_t rails) : from(make(network, rails)), to(make(network, rails)) {}

  test::NullNetwork network;
  std::unique_ptr<Devices> from, to;
};

struct Counted {
  RailTotals totals;
  uint64_t allocations = 0;
};

// What `turn` costs from the moment it is warm: it runs until `works()` has grown by so much.
template <typename Works, typename Turn>
Counted count(const std::vector<const Channel*>& channels, uint64_t warm_up, uint64_t counted,
              Works works, Turn turn) {
  const auto run = [&](uint64_t more) {
    uint64_t turns = 0;
    for (const uint64_t end = works() + more; works() < end && ++turns < 10'000'000;) turn();
    ASSERT_LT(turns, 10'000'000u) << "nothing moves";
  };
  run(warm_up);
  const RailTotals before = test::sum_counters(channels);
  const uint64_t heap_before = test::heap_allocations();
  run(counted);
  Counted result;
  result.allocations = test::heap_allocations() - heap_before;
  result.totals = test::difference(test::sum_counters(channels), before);
  return result;
}

void expect_promise(const Counted& counted) {
  const auto works = static_cast<double>(counted.totals.works);
  ASSERT_GT(works, 0);
  EXPECT_LE(static_cast<double>(counted.totals.doorbells) / works, kMostDoorbells);
  EXPECT_EQ(counted.totals.futile_posts, 0u);
  EXPECT_EQ(counted.allocations, 0u);
}

Counted run_sim_link(uint64_t seed) {
  SimHosts hosts(seed);
  hosts.charge_sender();
  test::BareLink link(*hosts.from.devices, *hosts.to.devices, kRails, kWorkBytes,
                      [&] { hosts.network.advance(1000); });
  return count(
      link.channels(), 8'000, 8'000, [&] { return link.done(); },
      [&] {
        for (int i = 0; i < 16 && link.submit(); ++i) hosts.network.advance(50);
        link.progress();
        link.drain_peer();
      });
}

TEST(Posting, WorksIntoALinkOverBusySimRails) { expect_promise(run_sim_link(1)); }

TEST(Posting, TheSameSeedGivesTheSameCounters) {
  const RailTotals first = run_sim_link(7).totals, second = run_sim_link(7).totals;
#define SLIME_FIELD(name, help) EXPECT_EQ(first.name, second.name) << #name;
  SLIME_RAIL_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
}

// isend, irecv and test as NCCL calls them; each turn starts at most one message.
Counted run_messages(test::CommLoad& load, uint64_t works) {
  return count(
      load.pair().send_channels, works, works, [&] { return load.arrivals(); },
      [&] {
        load.receive();
        load.send();
        load.test_receive();
        load.test_send();
      });
}

TEST(Posting, LargeMessagesOverBusySimRails) {
  SimHosts hosts;
  hosts.charge_sender();
  test::CommLoad load(*hosts.from.devices, *hosts.to.devices, {kRails, 0, 64 * kWorkBytes},
                      [&] { hosts.network.advance(1000); });
  expect_promise(run_messages(load, 8'000));
}

TEST(Posting, LargeMessagesOverNullRails) {
  for (const uint32_t rails : {1u, 4u}) {
    SCOPED_TRACE(rails);
    NullHosts hosts(rails);
    test::CommLoad load(*hosts.from, *hosts.to, {rails, 0, 64 * kWorkBytes}, [] {});
    expect_promise(run_messages(load, 20'000));
  }
}

// Messages of one stripe and eager ones leave as they come, so they are not counted by doorbells.
TEST(Posting, SmallMessagesAllocateNothing) {
  for (const uint32_t eager_max : {0u, 4096u}) {
    for (const size_t bytes : {size_t{8}, size_t{kWorkBytes}}) {
      SCOPED_TRACE("eager_max " + std::to_string(eager_max) + ", " + std::to_string(bytes) + " B");
      NullHosts hosts(1);
      test::CommLoad load(*hosts.from, *hosts.to, {1, eager_max, bytes}, [] {});
      const Counted counted = run_messages(load, 20'000);
      EXPECT_EQ(counted.allocations, 0u);
      EXPECT_EQ(counted.totals.futile_posts, 0u);
      EXPECT_GT(load.sent(), 10'000u);
    }
  }
}

// The null rail leaves payload alone, but what it does copy must be right: else the counts above
// would be of an engine that talks to itself.
TEST(Posting, NullRailsCarryEagerMessages) {
  NullHosts hosts(1);
  test::CommLoad load(*hosts.from, *hosts.to, {1, 4096, 8, 1}, [] {});
  std::memcpy(load.source(), "eight by", 8);
  ASSERT_TRUE(load.receive());
  while (!load.send()) load.test_receive();
  while (!load.test_send()) continue;
  while (!load.test_receive()) continue;
  EXPECT_EQ(std::memcmp(load.target(), "eight by", 8), 0);
}

}  // namespace
}  // namespace slime
