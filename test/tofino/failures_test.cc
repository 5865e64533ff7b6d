// What becomes of failures, and of connections that end.
#include <cstdlib>

#include "test/support/raw_agent.h"
#include "test/tofino/runtime_fixture.h"

namespace slime::tofino {
namespace {

using net::BfRuntime;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// The connection stays.
TEST_F(Runtime, ReportsWhatIsRefused) {
  ASSERT_EQ(error_of(runtime_.add(host(2, 1))), "");
  ASSERT_EQ(error_of(runtime_.add_group(group(5))), "");
  const std::pair<const char*, std::function<Result<void>()>> calls[] = {
      {"clear counts", [&] { return runtime_.reset(); }},
      {"read node", [&] { return runtime_.reset(); }},
      {"add hosts", [&] { return runtime_.add(host(1, 1)); }},
      {"modify hosts", [&] { return runtime_.modify(host(2, 1)); }},
      {"remove hosts", [&] { return runtime_.remove(host(2, 1)); }},
      {"default hosts",
       [&] {
         return runtime_.set_default("Ingress.bridge.hosts",
                                     {"Ingress.bridge.flood", {{"group", 16, 1}}});
       }},
      {"modify arrivals",
       [&] {
         return runtime_.clear_registers({"Ingress.arrivals", 0, 1000});
       }},
      {"modify counts",
       [&] {
         return runtime_.clear_counter({"Ingress.counts", 0});
       }},
      {"modify rate", [&] { return runtime_.limit("Ingress.rate", 1); }},
      {"read counts", [&]() -> Result<void> {
         const auto read = runtime_.read_counter({"Ingress.counts", 0});
         return read ? Result<void>() : fail(read.error());
       }}};
  for (const auto& [at, call] : calls) {
    fake_->change([&, text = at](FakeState& state) { state.fail_at = text; });
    EXPECT_THAT(error_of(call()), AllOf(HasSubstr(where() + " does not "), HasSubstr("no room")))
        << at;
    EXPECT_TRUE(runtime_.is_connected()) << at;
  }
  EXPECT_EQ(fake_->state().subscriptions, 1u);
}

TEST_F(Runtime, LeavesADeviceThatHangs) {
  BfRuntime hasty(fake_->address(), "switch", 0, 300);
  fake_->drop_streams();
  ASSERT_TRUE(until([&] { return !runtime_.is_connected(); }));
  // A busy machine may be late once or twice.
  ASSERT_TRUE(until([&] { return hasty.connect().has_value(); }));
  fake_->change([](FakeState& state) { state.hang = true; });
  EXPECT_THAT(error_of(hasty.add(host(1, 1))),
              AllOf(HasSubstr(where() + " did not add an entry"), HasSubstr("DEADLINE_EXCEEDED"),
                    HasSubstr("is bf_switchd running")));
  EXPECT_FALSE(hasty.is_connected());
  EXPECT_THAT(error_of(hasty.add(host(1, 1))), HasSubstr("no connection"));
  EXPECT_THAT(error_of(hasty.reset()), HasSubstr("no connection"));
  EXPECT_THAT(error_of(hasty.connect()), HasSubstr("DEADLINE_EXCEEDED"));
}

TEST_F(Runtime, LeavesAConnectionThatBreaksInACall) {
  fake_->change([](FakeState& state) {
    state.fail_at = "add cfg";
    state.fail_whole = true;
  });
  EXPECT_THAT(error_of(runtime_.mirror({1, 1})), AllOf(HasSubstr("did not"), HasSubstr("UNKNOWN")));
  EXPECT_THAT(error_of(runtime_.mirror({1, 1})), HasSubstr("no connection"));
  EXPECT_THAT(fake_->state().calls, Not(Contains("modify cfg")));
}

TEST_F(Runtime, LeavesADeviceThatAnswersOtherwise) {
  fake_->change([](FakeState& state) { state.answers_twice = true; });
  const auto read = runtime_.read_counter({"Ingress.counts", 5});
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().what, AllOf(HasSubstr("did not read"), HasSubstr("more messages")));
  EXPECT_FALSE(runtime_.is_connected());
}

// gRPC would go on with the next call.
TEST_F(Runtime, IsLostWithItsStream) {
  fake_->drop_streams();
  ASSERT_TRUE(until([&] { return !runtime_.is_connected(); }));
  EXPECT_FALSE(runtime_.is_connected());
  EXPECT_THAT(error_of(runtime_.add(host(1, 1))), HasSubstr("no connection"));
  ASSERT_EQ(error_of(runtime_.connect()), "");
  ASSERT_EQ(error_of(runtime_.reset()), "");
  EXPECT_EQ(error_of(runtime_.add(host(1, 1))), "");
  EXPECT_TRUE(runtime_.is_connected());
  EXPECT_EQ(fake_->state().subscriptions, 2u);
}

TEST_F(Runtime, IsLostWithItsProgram) {
  fake_->tell_of_reload();
  EXPECT_TRUE(until([&] { return !runtime_.is_connected(); }));
  EXPECT_THAT(error_of(runtime_.add(host(1, 1))), HasSubstr("no connection"));
}

// It answers again soon after bf_switchd does, however long that was away.
TEST_F(Runtime, ComesBackAfterARestart) {
  const uint16_t port = fake_->address().port();
  fake_ = nullptr;
  ASSERT_TRUE(until([&] { return !runtime_.is_connected(); }));
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(error_of(runtime_.connect()),
                AllOf(HasSubstr("BFRuntime at 127.0.0.1:"), HasSubstr("UNAVAILABLE"),
                      HasSubstr("device.runtime"), HasSubstr("50052")));
  }
  fake_ = std::make_unique<FakeBfrt>(port);
  ASSERT_EQ(error_of(runtime_.connect()), "") << "at once";
  ASSERT_EQ(error_of(runtime_.reset()), "");
  EXPECT_EQ(error_of(runtime_.add(host(1, 1))), "");
}

TEST(Connecting, WaitsUntilTheServerHasForgottenItsLast) {
  FakeBfrt fake;
  fake.change([](FakeState& state) { state.subscriber = net::bfrt::Client::kId; });
  BfRuntime runtime(fake.address(), "switch", 0, kLongMs);
  std::thread forgets([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    fake.change([](FakeState& state) { state.subscriber.reset(); });
  });
  EXPECT_EQ(error_of(runtime.connect()), "");
  forgets.join();
}

// The first message cannot be parsed, and the stream does not end: gRPC still works on its end when
// the connection is given up.
TEST(Connecting, LeavesAStreamWhoseMessageCannotBeParsed) {
  FakeBfrt fake;
  fake.change([](FakeState& state) { state.spoils_text = true; });
  BfRuntime runtime(fake.address(), "switch", 0, 300);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(error_of(runtime.connect()), HasSubstr("BFRuntime at "));
    EXPECT_FALSE(runtime.is_connected());
  }
}

// Three answers, each in time, are late together.
TEST(Connecting, HasOneDeadline) {
  FakeBfrt fake;
  fake.change([](FakeState& state) { state.delay_ms = 400; });
  BfRuntime runtime(fake.address(), "switch", 0, 1000);
  EXPECT_THAT(error_of(runtime.connect()), HasSubstr("DEADLINE_EXCEEDED"));
}

// Whatever is at the port of bf_switchd: it is left in time, and no length that comes is trusted.
TEST(Connecting, LeavesWhatIsNoServer) {
  const std::string settings("\0\0\0\4\0\0\0\0\0", 9);  // the first frame of a server (RFC 9113)
  const struct {
    const char* what;
    std::string first;
    int drip_ms;
  } kAgents[] = {{"silent", "", 0},
                 {"drips", "", 50},
                 {"drips after the settings", settings, 50},
                 {"a frame of 16 MiB", settings + std::string("\xff\xff\xff\0\0\0\0\0\1", 9), 50},
                 {"a banner", "SSH-2.0-OpenSSH_9.2p1\r\n", 0}};
  for (const auto& agent : kAgents) {
    SCOPED_TRACE(agent.what);
    const test::RawAgent at_port(agent.first, agent.drip_ms);
    BfRuntime runtime(at_port.address(), "switch", 0, 300);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_THAT(error_of(runtime.connect()), HasSubstr("BFRuntime at "));
    EXPECT_FALSE(runtime.is_connected());
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  }
}

TEST(Connecting, SaysWhatIsInTheWay) {
  FakeBfrt fake;
  const auto error_with = [&](const std::function<void(FakeState&)>& change, int call_ms) {
    FakeState before = fake.state();
    fake.change(change);
    BfRuntime runtime(fake.address(), "switch", 0, call_ms);
    std::string error = error_of(runtime.connect());
    EXPECT_THAT(error_of(runtime.reset()), HasSubstr("no connection"));
    EXPECT_TRUE(until([&] { return !fake.state().subscriber; })) << "it has unsubscribed";
    fake.change([&](FakeState& state) {
      state.is_owned = false;
      state.program = before.program;
      state.program_json = before.program_json;
      state.chip_json = before.chip_json;
    });
    return error;
  };
  EXPECT_THAT(error_with([](FakeState& state) { state.program = "tna_counter"; }, kLongMs),
              AllOf(HasSubstr("runs no P4 program \"switch\" but tna_counter"),
                    HasSubstr("device.program")));
  EXPECT_THAT(error_with([](FakeState& state) { state.is_owned = true; }, 300),
              HasSubstr("no other client for it"));
  EXPECT_THAT(error_with([](FakeState& state) { state.program_json.pop_back(); }, kLongMs),
              HasSubstr("description of the program"));
  EXPECT_THAT(error_with(
                  [](FakeState& state) {
                    state.chip_json = std::string(net::bfrt::Client::kMostBytes, ' ');
                  },
                  kLongMs),
              HasSubstr("RESOURCE_EXHAUSTED"));
  EXPECT_THAT(error_with([](FakeState& state) { state.chip_json = "{}"; }, kLongMs),
              HasSubstr("description of the chip"));
  BfRuntime early(fake.address(), "switch", 0, kLongMs);
  EXPECT_FALSE(early.is_connected());
  EXPECT_THAT(error_of(early.add(host(1, 1))), HasSubstr("no connection"));
}

TEST(Connecting, TakesIpv6) {
  if (!listen_on(*SocketAddress::parse("[::1]:0"))) GTEST_SKIP() << "this host has no IPv6";
  FakeBfrt fake(0, "[::1]");
  BfRuntime runtime(fake.address(), "switch", 0, kLongMs);
  ASSERT_EQ(error_of(runtime.connect()), "");
  ASSERT_EQ(error_of(runtime.reset()), "");
  EXPECT_TRUE(runtime.is_connected());
}

TEST(Connecting, TakesNoProxy) {
  ::setenv("http_proxy", "http://127.0.0.1:1", 1);
  FakeBfrt fake;
  BfRuntime runtime(fake.address(), "switch", 0, kLongMs);
  EXPECT_EQ(error_of(runtime.connect()), "");
  ::unsetenv("http_proxy");
}

TEST(Connecting, NeedsTablesToReset) {
  FakeBfrt fake;
  fake.change([](FakeState& state) { state.program_json = R"({"tables": []})"; });
  BfRuntime runtime(fake.address(), "switch", 0, kLongMs);
  ASSERT_EQ(error_of(runtime.connect()), "");
  EXPECT_THAT(error_of(runtime.reset()), HasSubstr("has no tables"));
}

}  // namespace
}  // namespace slime::tofino
