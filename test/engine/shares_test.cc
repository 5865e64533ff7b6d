// How rails of unequal and changing rates share a stream of large messages, in virtual time.
#include <gtest/gtest.h>

#include <cstdio>
#include <numeric>

#include "test/support/kept_warnings.h"
#include "test/support/sim_hosts.h"

namespace slime::test {
namespace {

using Rates = std::vector<uint64_t>;  // Mbit/s

constexpr size_t kMessage = 512 << 10;  // NCCL's step: a slice of its buffer of 4 MiB
constexpr uint32_t kWindow = 8;         // and its steps under way
constexpr uint64_t kMs = 1'000'000;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kTrials = 4;
#else
constexpr int kTrials = 40;
#endif

struct Options {
  uint64_t latency_ns = 50'000;
  uint64_t step_ns = 20'000;  // between calls of an end
  bool one_nic = true;
  // Threads that are away from their rails: now and then, for so long.
  uint64_t away_every_ns = 0, away_ns = 0;
};

// An endless stream of messages over a link of such rails.
class Stream {
 public:
  explicit Stream(const Rates& rates, const Options& options = {})
      : options_(options),
        from_(network_, rates.size(), caps(options), settings(), "a"),
        to_(network_, rates.size(), caps(options), settings(), "b") {
    network_.check_sources(false);
    for (size_t i = 0; i < rates.size(); ++i) {
      sim::RailModel model;
      model.rate_mbps = rates[i];
      model.latency_ns = options.latency_ns;
      from_.rails[i]->configure(from_.rails[i]->caps(), model);
      to_.rails[i]->configure(to_.rails[i]->caps(), model);
    }
    source_.resize(kMessage);
    target_.resize(kMessage);
    source_region_ = *from_.device().memory().acquire({source_.data(), kMessage});
    target_region_ = *to_.device().memory().acquire({target_.data(), kMessage});
    link_ = connect(network_, from_, to_, static_cast<uint32_t>(rates.size()), 4096);
  }

  void set_rate(size_t rail, uint64_t mbps) {
    from_.rails[rail]->set_rate(mbps);
    to_.rails[rail]->set_rate(mbps);
  }

  // Mbit/s in the next `ns`.
  double run(uint64_t ns) {
    const uint64_t before = received_, start = network_.now_ns(), end = start + ns;
    while (network_.now_ns() < end) {
      if (network_.now_ns() >= sender_back_ns_) move_sender();
      if (network_.now_ns() >= receiver_back_ns_) move_receiver();
      network_.advance(options_.step_ns);
      if (options_.away_every_ns > 0 && network_.now_ns() >= next_away_ns_) go_away();
    }
    return static_cast<double>((received_ - before) * kMessage) * 8000 /
           static_cast<double>(network_.now_ns() - start);
  }

 private:
  static RailCaps caps(const Options& options) {
    RailCaps caps;
    caps.guid = options.one_nic ? 0 : 1;
    caps.speed_mbps = 10'000;  // what a veth says, whatever is behind it
    return caps;
  }
  static Settings settings() {
    Settings settings;
    settings.rails_per_device = kMaxRails;
    return settings;
  }

  void go_away() {
    (turn_++ % 2 ? sender_back_ns_ : receiver_back_ns_) = network_.now_ns() + options_.away_ns;
    next_away_ns_ = network_.now_ns() + options_.away_every_ns;
  }
  void move_sender() {
    while (sends_.size() < kWindow) {
      Request* request = nullptr;
      const Status status =
          link_.sender->isend(source_.data(), kMessage, 0, source_region_, &request);
      ASSERT_EQ(status, Status::kOk);
      if (request == nullptr) break;
      sends_.push_back(request);
    }
    for (bool done = true; done && !sends_.empty();) {
      ASSERT_EQ(link_.sender->test(sends_.front(), &done, nullptr), Status::kOk);
      if (done) sends_.erase(sends_.begin());
    }
  }
  void move_receiver() {
    while (receives_.size() < kWindow) {
      const Receive receive{target_.data(), kMessage, 0, target_region_};
      Request* request = nullptr;
      ASSERT_EQ(link_.receiver->irecv({&receive, 1}, false, &request), Status::kOk);
      if (request == nullptr) break;
      receives_.push_back(request);
    }
    for (bool done = true; done && !receives_.empty();) {
      ASSERT_EQ(link_.receiver->test(receives_.front(), &done, nullptr), Status::kOk);
      if (!done) continue;
      receives_.erase(receives_.begin());
      ++received_;
    }
  }

  const Options options_;
  sim::Network network_{1};
  SimHost from_, to_;
  std::vector<std::byte> source_, target_;
  const MemoryRegion *source_region_ = nullptr, *target_region_ = nullptr;
  SimLink link_;
  std::vector<Request*> sends_, receives_;
  uint64_t received_ = 0;
  uint64_t next_away_ns_ = 0, sender_back_ns_ = 0, receiver_back_ns_ = 0;
  uint32_t turn_ = 0;
};

double sum(const Rates& rates) {
  return static_cast<double>(std::accumulate(rates.begin(), rates.end(), uint64_t{0}));
}

// Of rates that 8 messages keep busy for longer than threads are away.
const std::vector<Rates> kLinks = {
    {500, 500},
    {500, 250},
    {500, 50},
    {400, 200, 200, 100},
    {800, 700, 600, 500, 400, 300, 200, 100},
};

TEST(Shares, FollowTheRates) {
  std::vector<Rates> links = kLinks;
  links.insert(links.end(), {{1000, 10},
                             {25'000, 25'000},
                             {25'000, 10'000},
                             {8000, 7000, 6000, 5000, 4000, 3000, 2000, 1000}});
  for (const Rates& rates : links) {
    SCOPED_TRACE(testing::PrintToString(rates));
    Stream stream(rates);
    stream.run(300 * kMs);
    EXPECT_GE(stream.run(500 * kMs) / sum(rates), 0.97);
  }
}

TEST(Shares, AreFoundAtOnce) {
  for (const Rates& rates : kLinks) {
    SCOPED_TRACE(testing::PrintToString(rates));
    Stream stream(rates);
    EXPECT_GE(stream.run(300 * kMs) / sum(rates), 0.9);
  }
}

TEST(Shares, DoNotNeedThreadsThatNeverSleep) {
  for (const uint64_t away_ms : {1, 4, 12}) {
    for (const Rates& rates : kLinks) {
      const double busy_ms = kWindow * kMessage * 8 / (sum(rates) * 1000);
      if (busy_ms < static_cast<double>(away_ms)) continue;  // then all messages are done meanwhile
      SCOPED_TRACE(testing::PrintToString(rates) + " away " + std::to_string(away_ms));
      Options options;
      options.away_ns = away_ms * kMs;
      options.away_every_ns = 3 * options.away_ns;
      Stream stream(rates, options);
      stream.run(300 * kMs);
      EXPECT_GE(stream.run(500 * kMs) / sum(rates), 0.93);
    }
  }
}

TEST(Shares, RailsOfAnyRate) {
  sim::Random random(9);
  for (int trial = 0; trial < kTrials; ++trial) {
    Rates rates(2 + random.up_to(6));
    for (uint64_t& rate : rates) rate = 50 + random.up_to(1950);
    SCOPED_TRACE(testing::PrintToString(rates));
    Stream stream(rates);
    stream.run(300 * kMs);
    EXPECT_GE(stream.run(400 * kMs) / sum(rates), 0.93);
    rates[0] = 50 + random.up_to(1950);
    stream.set_rate(0, rates[0]);
    stream.run(1000 * kMs);
    EXPECT_GE(stream.run(400 * kMs) / sum(rates), 0.93) << "rail 0 now at " << rates[0];
  }
}

TEST(Shares, ARailThatFallsToATenthAndRecovers) {
  Stream stream({500, 500});
  stream.run(300 * kMs);
  stream.set_rate(1, 50);
  stream.run(200 * kMs);
  EXPECT_GE(stream.run(800 * kMs) / 550, 0.95);
  stream.set_rate(1, 500);
  stream.run(200 * kMs);
  EXPECT_GE(stream.run(800 * kMs) / 1000, 0.95);
}

// At 1 Mbit/s a stripe takes longer than the other rail needs for all messages under way, so the
// rail gets none, and only probes can show that it works again.
TEST(Shares, ARailThatGetsNothingIsFoundAgain) {
  Stream stream({1000, 1000});
  stream.run(300 * kMs);
  stream.set_rate(1, 1);
  stream.run(12'000 * kMs);  // until what was on its way has arrived
  EXPECT_GE(stream.run(500 * kMs) / 1001, 0.95);
  stream.set_rate(1, 1000);
  stream.run(2000 * kMs);
  EXPECT_GE(stream.run(500 * kMs) / 2000, 0.95);
}

// Of a NIC, and once. Sockets of one NIC do not warn of each other.
TEST(Shares, ANicThatStaysSlowIsReportedOnce) {
  for (const bool one_nic : {true, false}) {
    const KeptWarnings slow(" delivers ");
    Options options;
    options.step_ns = 100'000;
    options.one_nic = one_nic;
    Stream stream({500, 500, 150}, options);
    stream.run(4'000 * kMs);
    EXPECT_EQ(slow.lines().size(), 0u) << "not slow for 5 s yet";
    stream.run(12'000 * kMs);
    ASSERT_EQ(slow.lines().size(), one_nic ? 0u : 1u);
    if (one_nic) continue;
    const std::string line = slow.lines().front();
    EXPECT_NE(line.find("rail a.2 delivers 1"), std::string::npos) << line;
  }
}

// Both ends are called, and their rails answer probes; but the send waits for a receive of its tag.
TEST(Shares, ProbesDoNotKeepARequestWaitingForEver) {
  sim::Network network(1);
  Settings settings;
  settings.request_timeout = 20;
  SimHost from(network, 2, {}, settings, "a"), to(network, 2, {}, settings, "b");
  SimLink link = connect(network, from, to, 2, 0);
  std::vector<std::byte> memory(4096);
  const MemoryRegion* region = *from.device().memory().acquire({memory.data(), memory.size()});
  Status status = Status::kOk;
  while (status == Status::kOk && network.now_ns() < 100'000 * kMs) {
    Request* request = nullptr;
    status = link.sender->isend(memory.data(), memory.size(), 5, region, &request);
    ASSERT_EQ(request, nullptr);
    ASSERT_EQ(link.receiver->progress(), Status::kOk);
    network.advance(kMs);
  }
  EXPECT_EQ(status, Status::kTimeout);
  EXPECT_LT(network.now_ns(), 30'000 * kMs);
}

}  // namespace
}  // namespace slime::test
