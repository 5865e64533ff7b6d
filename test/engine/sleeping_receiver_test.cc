// A receiver that calls irecv once and then makes no call for long: its sender begins at once, over
// every kind of rail. What that costs a receiver that posts many receives is counted in doorbells.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include "test/support/load/engine_pair.h"
#include "test/support/sim_hosts.h"
#include "test/support/tcp_link.h"
#include "test/support/verbs/two_ports.h"

namespace slime::test {
namespace {

constexpr uint32_t kEagerMax = 4096;
constexpr size_t kLargest = 4 << 20;
constexpr size_t kUnderWay = 128 << 10;  // of a large message, before the receiver calls again

RailCaps sim_caps(bool arrives_unpolled) {
  RailCaps caps;
  caps.transport = "test";
  caps.arrives_unpolled = caps.confirms_in_hardware = arrives_unpolled;
  return caps;
}

// Two hosts whose rails are of one kind. pass() lets time pass.
class Hosts {
 public:
  virtual ~Hosts() = default;
  virtual void pass() { std::this_thread::sleep_for(std::chrono::microseconds(200)); }
  std::unique_ptr<Devices> from, to;
  std::string absent;  // why this host has no such rails
};

class SimHosts final : public Hosts {
 public:
  SimHosts(bool arrives_unpolled, size_t rails)
      : a_(network_, rails, sim_caps(arrives_unpolled), Settings(), "a"),
        b_(network_, rails, sim_caps(arrives_unpolled), Settings(), "b") {
    from = std::move(a_.devices);
    to = std::move(b_.devices);
  }
  ~SimHosts() override { from.reset(), to.reset(); }
  void pass() override { network_.advance(10'000); }

 private:
  sim::Network network_{1};
  SimHost a_, b_;
};

class RealHosts final : public Hosts {
 public:
  RealHosts(const char* transport, int rails) {
    Settings settings;
    settings.ifname = "lo";
    settings.transports = transport;
    settings.fabric_provider = "shm";
    settings.rails_per_if = rails;
    for (auto* devices : {&from, &to}) {
      std::vector<std::string> notes;
      auto opened = open_rails(settings, &notes);
      EXPECT_TRUE(opened) << opened.error().what;
      if (!opened || opened->empty()) {
        absent = notes.empty() ? "no rail" : notes.front();
        return;
      }
      *devices = Devices::of_rails(std::move(*opened), settings, SteadyClock::instance());
    }
  }
};

class VerbsHosts final : public Hosts {
 public:
  VerbsHosts() {
    for (auto* devices : {&from, &to}) {
      std::vector<std::unique_ptr<Rail>> one;
      one.push_back(std::move(ports_.rails.back()));
      ports_.rails.pop_back();
      *devices = Devices::of_rails(std::move(one), Settings(), SteadyClock::instance());
    }
  }
  ~VerbsHosts() override { from.reset(), to.reset(); }
  void pass() override {
    while (ports_.step()) continue;
    if (TwoPorts::are_real()) Hosts::pass();
  }

 private:
  TwoPorts ports_{Settings()};
};

struct Kind {
  const char* name;
  uint32_t rails;
  std::unique_ptr<Hosts> (*make)();
};
const Kind kKinds[] = {
    {"sim", 1, [] { return std::unique_ptr<Hosts>(new SimHosts(false, 1)); }},
    {"sim_hca", 1, [] { return std::unique_ptr<Hosts>(new SimHosts(true, 1)); }},
    {"sim_4_rails", 4, [] { return std::unique_ptr<Hosts>(new SimHosts(false, 4)); }},
    {"tcp", 1, [] { return std::unique_ptr<Hosts>(new RealHosts("tcp", 1)); }},
    {"tcp_2_rails", 2, [] { return std::unique_ptr<Hosts>(new RealHosts("tcp", 2)); }},
    {"verbs", 1, [] { return std::unique_ptr<Hosts>(new VerbsHosts()); }},
    {"libfabric_shm", 1, [] { return std::unique_ptr<Hosts>(new RealHosts("libfabric", 1)); }},
};

struct Ends {
  Ends(Hosts& hosts, uint32_t rails)
      : source(value_of(RegisteredBuffer::make(*hosts.from->device(0), kLargest))),
        target(value_of(RegisteredBuffer::make(*hosts.to->device(0), kLargest))),
        pair(connect_engines(*hosts.from, *hosts.to, rails, kEagerMax, [&] { hosts.pass(); })) {}
  Status irecv(size_t bytes, Request** request) {
    const Receive receive{target.data(), bytes, 0, target.region()};
    return pair.receiver->irecv({&receive, 1}, false, request);
  }
  Status isend(size_t bytes, Request** request) {
    return pair.sender->isend(source.data(), bytes, 0, source.region(), request);
  }
  uint64_t bytes_sent() const { return sum_counters(pair.send_channels).bytes_sent; }
  uint64_t receiver_doorbells() const { return sum_counters(pair.recv_channels).doorbells; }

  RegisteredBuffer source, target;
  EnginePair pair;
};

class SleepingReceiver : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    hosts_ = GetParam().make();
    if (!hosts_->absent.empty()) GTEST_SKIP() << hosts_->absent;
    link_.emplace(*hosts_, GetParam().rails);
  }
  // irecv is the receiver's only call until isend has taken the message, as with a barrier between.
  void send_to_a_sleeper(size_t bytes) {
    std::memset(link_->source.data(), static_cast<int>(++seed_), bytes);
    Request *received = nullptr, *sent = nullptr;
    // In a thread of its own: a sender that waits moves the other comms of its thread.
    std::thread([&] { EXPECT_EQ(link_->irecv(bytes, &received), Status::kOk); }).join();
    ASSERT_NE(received, nullptr);
    const uint64_t before = link_->bytes_sent();
    ASSERT_TRUE(until([&] {
      EXPECT_EQ(link_->isend(bytes, &sent), Status::kOk);
      return sent != nullptr;
    })) << "isend waits for a call of the receiver";
    bool sent_done = false, received_done = false;
    EXPECT_EQ(link_->pair.sender->test(sent, &sent_done, nullptr), Status::kOk);
    EXPECT_GE(link_->bytes_sent() - before, std::min(bytes, kUnderWay)) << "with the rails";
    ASSERT_TRUE(until([&] {
      if (!sent_done) step(*link_->pair.sender, sent, &sent_done);
      if (!received_done) step(*link_->pair.receiver, received, &received_done);
      return sent_done && received_done;
    }));
    EXPECT_EQ(std::memcmp(link_->source.data(), link_->target.data(), bytes), 0);
  }
  static void step(Comm& comm, Request* request, bool* done) {
    EXPECT_EQ(comm.test(request, done, nullptr), Status::kOk);
  }
  bool until(const std::function<bool()>& condition) {
    return in_time([&] {
      hosts_->pass();
      return condition() || HasFailure();
    });
  }

  std::unique_ptr<Hosts> hosts_;
  std::optional<Ends> link_;
  unsigned seed_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Rails, SleepingReceiver, ::testing::ValuesIn(kKinds),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(SleepingReceiver, HoldsNoSender) {
  for (const size_t bytes : {size_t{64} << 10, size_t{1} << 10, kLargest, size_t{0}, kLargest}) {
    SCOPED_TRACE(bytes);
    ASSERT_NO_FATAL_FAILURE(send_to_a_sleeper(bytes));
  }
}

// As programs do that measure size after size: after small messages in a row the receiver holds CTS
// back, but not that of a receive with more room.
TEST_P(SleepingReceiver, HoldsNoSenderAfterSmallMessages) {
  for (size_t bytes = 8; bytes <= kLargest; bytes *= 8) {
    SCOPED_TRACE(bytes);
    for (uint32_t i = 0; i < 2 * kEagerStreak; ++i) {
      ASSERT_NO_FATAL_FAILURE(send_to_a_sleeper(bytes));
    }
  }
}

// Counted over simulated rails, where a doorbell and a work in flight are what they are on a NIC.
class Doorbells : public ::testing::Test {
 protected:
  void post() {
    ASSERT_EQ(link_.irecv(kLargest, &receive_), Status::kOk);
    ASSERT_NE(receive_, nullptr);
  }
  void test() {
    bool done = false;
    hosts_.pass();
    ASSERT_EQ(link_.pair.receiver->test(receive_, &done, nullptr), Status::kOk);
  }

  SimHosts hosts_{true, 1};
  Ends link_{hosts_, 1};
  Request* receive_ = nullptr;
};

TEST_F(Doorbells, ManyReceivesInARowTakeTwo) {
  post();
  test();  // the probe of a new link has left
  const uint64_t before = link_.receiver_doorbells();
  for (int i = 0; i < 8; ++i) post();
  EXPECT_EQ(link_.receiver_doorbells() - before, 1u)
      << "the first receive leaves at once, the others wait";
  for (int i = 0; i < 3; ++i) test();
  EXPECT_EQ(link_.receiver_doorbells() - before, 2u);
}

TEST_F(Doorbells, ReceivesBetweenTestsTakeOneEach) {
  post();
  test();
  const uint64_t before = link_.receiver_doorbells();
  for (uint64_t i = 1; i <= 8; ++i) {
    post();
    for (int k = 0; k < 3; ++k) test();
    EXPECT_EQ(link_.receiver_doorbells() - before, i);
  }
}

}  // namespace
}  // namespace slime::test
