// What the driver of bmv2 asks of it, in which order, and what becomes of failures.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <algorithm>
#include <functional>
#include <thread>

#include "switch/bmv2/program.h"
#include "switch/bmv2/runtime.h"
#include "test/p4/fake_bmv2.h"
#include "test/support/raw_agent.h"

namespace slime::p4 {
namespace {

using testing::HasSubstr;

SocketAddress at(const char* text) { return *SocketAddress::parse(text); }

net::P4Options options_for(const FakeBmv2& fake) {
  net::P4Options options;
  options.runtime = fake.address();
  options.address = at("10.0.0.254:28880");
  options.call_ms = 60'000;  // the machine may be busy
  options.mac = 0x020000000001;
  for (uint16_t host = 1; host <= 4; ++host) {
    options.hosts[0x0a000000u + host] = {0x020000000100u + host, host};
  }
  return options;
}

net::JobSpec job(uint16_t number, uint32_t slots = 4) {
  net::JobSpec spec;
  spec.job = number;
  spec.generation = 3;
  spec.token = 0x01020304;
  spec.slots = slots;
  spec.max_lanes = 64;
  spec.children = {at("10.0.0.1:4000"), at("10.0.0.2:4000")};
  return spec;
}

uint64_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

class Driver : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = net::open_bmv2(options_for(*fake_));
    ASSERT_TRUE(opened) << opened.error().what;
    switch_ = std::move(*opened);
    begin();
  }
  void begin() {
    fake_->change([](FakeState& state) { state.calls.clear(); });
  }
  // Where that call is; the number of calls if it was not made.
  static size_t first(const FakeState& state, const std::string& call) {
    return static_cast<size_t>(std::ranges::find(state.calls, call) - state.calls.begin());
  }
  size_t entries() const {
    size_t count = 0;
    for (const auto& [name, entries] : fake_->state().tables) count += entries.size();
    return count;
  }
  std::string error_of(const net::JobSpec& spec) {
    const auto added = switch_->add_job(spec);
    return added ? "" : added.error().what;
  }

  std::unique_ptr<FakeBmv2> fake_ = std::make_unique<FakeBmv2>();
  std::unique_ptr<net::P4Switch> switch_;
};

TEST_F(Driver, ProgramsTheSwitchFirst) {
  const FakeState state = fake_->state();
  EXPECT_EQ(state.tables.at("addresses").size(), 1u);
  EXPECT_EQ(state.tables.at("hosts").size(), 5u);  // four, and its own MAC
  EXPECT_EQ(state.default_actions.at("hosts"), "flood");
  EXPECT_EQ(switch_->shape().max_lanes, 64u);
}

TEST_F(Driver, AddsTheJobLastAndRemovesItFirst) {
  const size_t before = entries();
  ASSERT_TRUE(switch_->add_job(job(7)));
  const FakeState added = fake_->state();
  EXPECT_EQ(added.calls.back(), "add jobs");
  EXPECT_LT(first(added, "clear arrivals 0 8"), first(added, "add sources"));
  EXPECT_EQ(added.tables.at("sources").size(), 2u);
  EXPECT_EQ(added.tables.at("ends").size(), 2u);
  EXPECT_EQ(added.replicas.size(), 3u);  // and that of flooding
  begin();
  ASSERT_TRUE(switch_->remove_job(7));
  EXPECT_EQ(fake_->state().calls.front(), "remove jobs");
  EXPECT_EQ(entries(), before);
  EXPECT_EQ(fake_->state().groups.size(), 1u);
  EXPECT_EQ(fake_->state().replicas.size(), 1u);
  EXPECT_FALSE(switch_->remove_job(7));
}

TEST_F(Driver, FencesBeforeItClears) {
  ASSERT_TRUE(switch_->add_job(job(7)));
  begin();
  ASSERT_TRUE(switch_->fence(7, 4, 0x0a0b0c0d));
  const FakeState state = fake_->state();
  EXPECT_EQ(state.calls.front(), "modify jobs");
  EXPECT_EQ(first(state, "clear arrivals 0 8"), 1u);
  const auto& data = state.tables.at("jobs").begin()->second.data;
  EXPECT_EQ(data[1], std::string("\x04", 1));
  EXPECT_EQ(data[2], std::string("\x0a\x0b\x0c\x0d", 4));
}

TEST_F(Driver, GivesEachJobItsOwnSlots) {
  ASSERT_TRUE(switch_->add_job(job(1, 4)));
  ASSERT_TRUE(switch_->add_job(job(2, 8)));
  ASSERT_TRUE(switch_->add_job(job(3, 4)));
  ASSERT_TRUE(switch_->remove_job(2));
  begin();
  ASSERT_TRUE(switch_->add_job(job(4, 16)));  // behind the last
  ASSERT_TRUE(switch_->add_job(job(5, 8)));   // in the gap
  const FakeState state = fake_->state();
  EXPECT_LT(first(state, "clear arrivals 32 64"), state.calls.size());
  EXPECT_LT(first(state, "clear arrivals 8 24"), state.calls.size());
  EXPECT_THAT(error_of(job(6, 9000)), HasSubstr("8192 slots"));
}

TEST_F(Driver, RailsHaveGroupsOfTheirOwn) {
  net::JobSpec spec = job(7);
  spec.rails = 2;
  spec.children = {at("10.0.0.1:4000"), at("10.0.0.2:4000"), at("10.0.0.3:4000"),
                   at("10.0.0.4:4000")};
  ASSERT_TRUE(switch_->add_job(spec));
  EXPECT_EQ(fake_->state().groups.size(), 3u);
  EXPECT_EQ(fake_->state().tables.at("ends").size(), 4u);
}

TEST_F(Driver, LeavesHaveAWayToTheirParent) {
  net::JobSpec spec = job(7);
  spec.parent = net::Parent{at("10.0.0.3:28880"), 1};
  ASSERT_TRUE(switch_->add_job(spec));
  EXPECT_EQ(fake_->state().mirrors.size(), 1u);
  EXPECT_EQ(fake_->state().tables.at("ends").size(), 3u);
}

TEST_F(Driver, RefusesWhatTheProgramCannot) {
  net::JobSpec spec = job(7);
  spec.max_lanes = 65;
  EXPECT_THAT(error_of(spec), HasSubstr("64 lanes"));
  spec = job(7);
  spec.children[1] = at("10.0.0.9:4000");
  EXPECT_THAT(error_of(spec), HasSubstr("section hosts"));
  spec.children[1] = at("[::1]:4000");
  EXPECT_THAT(error_of(spec), HasSubstr("IPv4"));
  spec = job(7);
  spec.children = {at("10.0.0.1:1"), at("10.0.0.2:1"), at("10.0.0.3:1")};
  spec.rails = 3;
  EXPECT_THAT(error_of(spec), HasSubstr("NCCL_SLIME_SWITCH_RAILS"));
  spec.children.clear();
  spec.rails = 1;
  EXPECT_THAT(error_of(spec), HasSubstr("1 to 32 children"));
  EXPECT_TRUE(fake_->state().calls.empty()) << "nothing was asked of bmv2";
}

// Whatever call fails, nothing of the job stays, and it can be added again.
TEST_F(Driver, TakesBackWhatWasAdded) {
  const size_t before = entries();
  for (const char* call : {"clear epochs 0 8", "zero job_counts", "group", "replica", "associate",
                           "add sources", "add ends", "add jobs"}) {
    fake_->change([&](FakeState& state) { state.fail_at = call; });
    EXPECT_THAT(error_of(job(7)), HasSubstr("error 100")) << call;
    fake_->change([](FakeState& state) { state.fail_at.clear(); });
    EXPECT_EQ(entries(), before) << call;
    EXPECT_EQ(fake_->state().groups.size(), 1u) << call;
    EXPECT_EQ(fake_->state().replicas.size(), 1u) << call;
    EXPECT_FALSE(switch_->totals(7)) << call;
  }
  EXPECT_EQ(error_of(job(7)), "");
}

TEST_F(Driver, CountsByTheProgramsOrder) {
  ASSERT_TRUE(switch_->add_job(job(1)));
  ASSERT_TRUE(switch_->add_job(job(2)));  // the second row of 16
  const auto totals = switch_->totals(2);
  ASSERT_TRUE(totals) << totals.error().what;
  EXPECT_EQ(totals->contributions, 1016u);
  EXPECT_EQ(totals->rejected_shape, 1028u);
  const auto counters = switch_->counters();
  EXPECT_STREQ(counters.front().name, "malformed");
  EXPECT_EQ(counters.front().value, 1000u);
  EXPECT_STREQ(counters.back().name, "restarts");
}

// Its jobs are over and hold nothing; it is programmed again, and takes new ones. Whatever is
// refused meanwhile is tried again.
TEST_F(Driver, BeginsAgainAfterARestart) {
  const auto tend_until = [&](const std::function<bool()>& done) {
    for (int i = 0; i < 600 && !done(); ++i) {
      (void)switch_->maintain();
      std::this_thread::sleep_for(net::P4Switch::kCheckEvery / 10);
    }
    return done();
  };
  const auto is_lost = [&] { return error_of(job(8)).find("is lost") != std::string::npos; };
  const auto is_back = [&] { return switch_->counters().back().value == 1; };
  ASSERT_TRUE(switch_->add_job(job(7, 8192)));
  fake_->change([](FakeState& state) { state.broken = true; });
  EXPECT_FALSE(switch_->totals(7));
  ASSERT_TRUE(tend_until(is_lost));
  EXPECT_FALSE(switch_->fence(7, 4, 1));
  fake_->change([](FakeState& state) {
    state.broken = false;
    state.fail_at = "limit reject_rate";
  });
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(net::P4Switch::kCheckEvery);
    (void)switch_->maintain();
    EXPECT_TRUE(is_lost());
    EXPECT_FALSE(is_back());
  }
  fake_->change([](FakeState& state) { state.fail_at.clear(); });
  ASSERT_TRUE(tend_until(is_back));
  EXPECT_EQ(error_of(job(8, 8192)), "");
  const auto totals = switch_->totals(7);
  ASSERT_TRUE(totals);
  EXPECT_EQ(totals->contributions, 0u);
  EXPECT_TRUE(switch_->remove_job(7));
}

// Every call has a deadline; what answers late is left.
TEST_F(Driver, LeavesASwitchThatHangs) {
  net::P4Options options = options_for(*fake_);
  options.call_ms = 300;
  switch_ = nullptr;
  // A busy machine may be late once or twice.
  for (int i = 0; i < 100 && !switch_; ++i) {
    if (auto opened = net::open_bmv2(options)) switch_ = std::move(*opened);
  }
  ASSERT_TRUE(switch_);
  fake_->change([](FakeState& state) { state.hang = true; });
  EXPECT_THAT(error_of(job(7)), HasSubstr("did not"));
  EXPECT_THAT(error_of(job(7)), HasSubstr("no connection"));
}

// Whatever is at the port of the agent: a call ends by its deadline, not by that of each byte, and
// no length that comes is trusted. The limit of time is that of a busy machine, that of memory far
// below what these lengths ask for.
TEST(BrokenAgent, CostsNoMoreThanACall) {
  const std::string version("\x80\x01\x00\x02", 4);  // of a reply
  const struct {
    const char* what;
    std::string first;
    int drip_ms;
  } kAgents[] = {{"silent", "", 0},
                 {"drips", "", 50},
                 {"drips a name", version + std::string("\x00\x00\x40\x00", 4), 50},
                 {"a text of 2 GiB", version + std::string("\x7f\xff\xff\xff", 4) + "name", 0},
                 {"a list",
                  version + std::string("\0\0\0\1a\0\0\0\0\x0f\0\0\x0b", 13) +
                      std::string("\x7f\xff\xff\xff", 4),
                  0},
                 {"a banner", "SSH-2.0-OpenSSH_9.2p1\r\n", 0},
                 {"more than an answer", version + std::string(1 << 20, '\1'), 0}};
  const uint64_t memory = peak_bytes();
  for (const auto& agent : kAgents) {
    SCOPED_TRACE(agent.what);
    const test::RawAgent at_port(agent.first, agent.drip_ms);
    net::Bmv2Runtime runtime(at_port.address(), 300);
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_TRUE(runtime.connect());
    EXPECT_FALSE(runtime.reset());
    EXPECT_FALSE(runtime.is_connected());
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  }
  EXPECT_LT(peak_bytes() - memory, uint64_t{256} << 20);
}

// What was not asked for would be taken for the next answer.
TEST(BrokenAgent, IsLeftWhenItSpeaksUnasked) {
  const test::RawAgent at_port("x", 0);
  net::Bmv2Runtime runtime(at_port.address(), 300);
  ASSERT_TRUE(runtime.connect());
  for (int i = 0; i < 6000 && runtime.is_connected(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_FALSE(runtime.is_connected());
}

TEST(DriverOptions, FormatsAreThoseOfTheSwitch) {
  FakeBmv2 fake;
  net::P4Options options = options_for(fake);
  EXPECT_EQ(net::open_bmv2(options).value()->shape().formats, sap::kKnownFormats);
  options.formats = sap::kWordFormats;
  EXPECT_EQ(net::open_bmv2(options).value()->shape().formats, sap::kWordFormats);
}

TEST(DriverOptions, AreChecked) {
  FakeBmv2 fake;
  const auto error_with = [&](auto change) {
    net::P4Options options = options_for(fake);
    change(options);
    const auto opened = net::open_bmv2(options);
    return opened ? std::string() : opened.error().what;
  };
  EXPECT_THAT(error_with([](auto& o) { o.shards = 3; }), HasSubstr("1, 2, 4, 8 or 16"));
  EXPECT_THAT(error_with([](auto& o) { o.address = at("[::1]:28880"); }), HasSubstr("IPv4"));
  EXPECT_THAT(error_with([](auto& o) { o.formats = 1; }), HasSubstr("i32 and u32"));
  EXPECT_THAT(error_with([](auto& o) { o.hosts[0x0a000001].port = 511; }), HasSubstr("510"));
  EXPECT_THAT(error_with([](auto& o) { o.hosts[0x0a000001].mac = o.mac; }), HasSubstr("MAC"));
  EXPECT_THAT(error_with([](auto& o) { o.runtime = at("127.0.0.1:1"); }),
              HasSubstr("device.runtime"));
}

}  // namespace
}  // namespace slime::p4
