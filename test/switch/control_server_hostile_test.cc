// The control channel over TCP: wrong keys, replays, strangers, and peers that take their time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "base/log.h"
#include "test/support/strangers.h"
#include "test/switch/control_server.h"

namespace slime::net {
namespace {

using control::Refusal;
using control::Refused;
using test::key_of;
using test::kKey;
using test::kMs;
using test::kSecond;
using test::Stranger;
using test::wanted;
using testing::HasSubstr;

class HostileControlTest : public test::ControlServerFixture {};

TEST_F(HostileControlTest, AWrongKeyIsRefused) {
  start(kKey);
  auto worker = client(key_of("another key of sixteen bytes"));
  const auto refused = std::get<Refused>(ask(*worker, wanted()));
  EXPECT_THAT(refused.text, HasSubstr("CONNECTION"));
  EXPECT_THAT(refused.text, HasSubstr("not signed with this switch's key"));
  EXPECT_EQ(error_.status, Status::kConfig);
  EXPECT_TRUE(driver_.jobs.empty());
  EXPECT_EQ(counters().unauthorized.get(), 1u);
  EXPECT_NE(worker->post(wanted(), kSecond, &error_), Status::kOk) << "the error is final";
}

TEST_F(HostileControlTest, NoKeyWhereOneIsWanted) {
  start(kKey);
  auto worker = client(SecretKey());
  EXPECT_EQ(finish(*worker), Status::kConfig);
  EXPECT_THAT(error_.what, HasSubstr("wants a key"));
  // Who ignores that is refused too.
  Stranger stranger(server_->address());
  stranger.send(control::encode(control::Hello{}, 0));
  stranger.send(control::encode(control::Drain{true}, 1));
  EXPECT_TRUE(turn_until([&] {
    stranger.receive();
    const auto message = stranger.last();
    return message && std::holds_alternative<Refused>(*message);
  }));
  EXPECT_FALSE(controller_->draining());
}

TEST_F(HostileControlTest, AKeyWhereNoneIsWanted) {
  start(SecretKey());
  auto worker = client(kKey);
  EXPECT_EQ(finish(*worker), Status::kConfig);
  EXPECT_THAT(error_.what, HasSubstr("has no key"));
}

TEST_F(HostileControlTest, WithoutAKeyOnlyThisHostMayTalk) {
  ServerOptions options;
  const auto parse = [](const char* text) { return SocketAddress::parse(text).value(); };
  EXPECT_FALSE(refuse_stranger(options, parse("127.0.0.1:5")));
  EXPECT_FALSE(refuse_stranger(options, parse("[::1]:5")));
  for (const char* far : {"10.0.0.1:5", "[fd00::1]:5", "[::ffff:127.0.0.1]:5", "0.0.0.0:5"}) {
    const auto refused = refuse_stranger(options, parse(far));
    ASSERT_TRUE(refused) << far;
    EXPECT_THAT(refused->text, HasSubstr("control.key_file"));
    EXPECT_THAT(refused->text, HasSubstr("allow_unauthenticated"));
  }
  options.allow_unauthenticated = true;
  EXPECT_FALSE(refuse_stranger(options, parse("10.0.0.1:5")));
  options = {};
  options.keys.common = kKey;
  EXPECT_FALSE(refuse_stranger(options, parse("10.0.0.1:5"))) << "the key decides";
}

// What a listener between them could record and send again.
TEST_F(HostileControlTest, AReplayedRequestIsRefused) {
  start(kKey);
  const Nonce nonce{};
  auto hello = control::encode(control::Hello{nonce}, 0);
  const auto challenged = [&](Stranger& stranger) {
    stranger.send(hello);
    EXPECT_TRUE(turn_until([&] {
      stranger.receive();
      return stranger.last().has_value();
    }));
    return std::get<control::Challenge>(*stranger.last()).nonce;
  };
  Stranger first(server_->address());
  const control::Signer signer(kKey, {}, nonce, challenged(first));
  auto request = control::encode(wanted(), 1);
  ASSERT_TRUE(signer.sign(control::Direction::kRequest, request));
  first.send(request);
  ASSERT_TRUE(turn_until([&] { return driver_.jobs.size() == 1; }));

  Stranger second(server_->address());
  (void)challenged(second);
  second.send(request);
  EXPECT_TRUE(is_closed(second));
  EXPECT_EQ(std::get<Refused>(*second.last()).why, Refusal::kUnauthorized);

  first.send(request);
  EXPECT_TRUE(is_closed(first));
  EXPECT_EQ(std::get<Refused>(*first.last()).why, Refusal::kSequence);
  EXPECT_EQ(driver_.jobs.size(), 1u);
  EXPECT_EQ(counters().replayed.get(), 1u);
}

TEST_F(HostileControlTest, AnswersOfAnotherSwitchAreNotBelieved) {
  const Fd listener = listen_on(SocketAddress::parse("127.0.0.1").value()).value();
  auto worker =
      SwitchClient::start(local_address(listener).value(), kKey, 5 * kSecond, clock_).value();
  ASSERT_EQ(worker->post(wanted(), kSecond, &error_), Status::kOk);
  Accepted accepted;
  while (accept_one(listener, &accepted, &error_) == Status::kAgain) std::this_thread::yield();
  const auto send = [&](const std::vector<std::byte>& frame) {
    size_t done = 0;
    EXPECT_EQ(send_message(accepted.fd, frame, &done, &error_), Status::kOk);
  };
  send(control::encode(control::Challenge{Nonce{}, true}, 0));
  send(control::encode(
      control::JobGrant{{{}, 1, 1}, 0, test::address_of_child(0), 1, 16, 64, 3, 1000}, 1));
  Status status = Status::kAgain;
  while ((status = worker->progress(&error_)) == Status::kAgain) std::this_thread::yield();
  EXPECT_EQ(status, Status::kConfig);
  EXPECT_THAT(error_.what, HasSubstr("not signed with our key"));
}

TEST_F(HostileControlTest, GarbageEndsTheConnectionAndNothingElse) {
  start(kKey);
  auto worker = client(kKey);
  ASSERT_EQ(finish(*worker), Status::kOk);
  std::mt19937_64 random(7);
  for (int i = 0; i < 200; ++i) {
    Stranger stranger(server_->address());
    std::vector<std::byte> noise(1 + random() % 4096);
    for (std::byte& byte : noise) byte = static_cast<std::byte>(random());
    if (i % 2 == 0) {  // a header that is right, then noise
      const auto hello = control::encode(control::Hello{}, 0);
      std::copy_n(hello.begin(), std::min(noise.size(), control::kHeaderBytes), noise.begin());
    }
    stranger.send(noise);
    ASSERT_EQ(shutdown(stranger.fd.get(), SHUT_WR), 0);
    ASSERT_TRUE(is_closed(stranger)) << i;
  }
  EXPECT_EQ(server_->connections(), 1u);
  EXPECT_GT(counters().malformed.get(), 90u);
  EXPECT_TRUE(std::holds_alternative<control::JobGrant>(ask(*worker, wanted())));
}

TEST_F(HostileControlTest, ManyStrangersDoNotDelayAClient) {
  slime::test::Strangers strangers;
  SLIME_NEEDS_MANY(strangers);
  ServerOptions options;
  options.keys.common = kKey;
  options.greeting_ns = 3600 * kSecond;
  start(options);
  constexpr uint64_t kMillisecond = kSecond / 1000;
  strangers.come(server_->address(), slime::test::Strangers::kMany, [this] {
    clock_.pass(kMillisecond);
    server_->run();
  });
  auto worker = client(kKey);
  Status status = worker->post(wanted(), 5 * kSecond, &error_);
  uint64_t passed_ns = 0;
  ASSERT_TRUE(turn_until([&] {
    if ((passed_ns += kMillisecond) <= kSecond) clock_.pass(kMillisecond);
    if (status == Status::kOk || status == Status::kAgain) status = worker->progress(&error_);
    return status != Status::kAgain;
  }));
  EXPECT_EQ(status, Status::kOk) << error_.what;
  EXPECT_EQ(counters().connections_late.get(), 0u);
}

TEST_F(HostileControlTest, StrangersHaveOneLineASecond) {
  static std::vector<std::string> lines;
  lines.clear();
  start(kKey);
  log::set_sink([](log::Level, const char*, int, const char* text) { lines.emplace_back(text); });
  const auto send_garbage = [this](int strangers) {
    for (int i = 0; i < strangers; ++i) {
      Stranger stranger(server_->address());
      stranger.send(std::vector<std::byte>(100, std::byte{7}));
      ASSERT_EQ(shutdown(stranger.fd.get(), SHUT_WR), 0);
      ASSERT_TRUE(is_closed(stranger));
    }
  };
  send_garbage(20);
  EXPECT_EQ(lines.size(), 1u);
  clock_.pass(kSecond);
  send_garbage(1);
  log::set_sink(nullptr);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[1], HasSubstr("19 more"));
}

// A switch with more visitors than places resets some; who always is gives up at its deadline.
TEST_F(HostileControlTest, AClientThatWasResetTriesAgain) {
  const Fd listener = *listen_on(*SocketAddress::parse("127.0.0.1"));
  auto worker = *SwitchClient::start(*local_address(listener), kKey, 5 * kSecond, clock_);
  const auto& real = SteadyClock::instance();
  const uint64_t end = real.now_ns() + 60 * kSecond;
  Status status = Status::kAgain;
  int visits = 0;
  while (status == Status::kAgain && real.now_ns() < end) {
    Accepted visitor;
    Error error;
    if (accept_one(listener, &visitor, &error) == Status::kOk) {
      ++visits;
      abort_connection(std::move(visitor.fd));
    }
    status = worker->progress(&error_);
    if (worker->descriptor() < 0) clock_.pass(kSecond / 4);  // it pauses
  }
  EXPECT_EQ(status, Status::kTimeout) << error_.what;
  EXPECT_THAT(error_.what, HasSubstr("reset"));
  EXPECT_GT(visits, 8);
}

// Something takes connections there and says nothing, as a proxy whose switch is gone.
TEST_F(HostileControlTest, AClientThatIsNotGreetedTriesAnotherAddress) {
  start(kKey);
  const Fd silent = *listen_on(*SocketAddress::parse("127.0.0.1"));
  auto worker = *SwitchClient::start(Addresses{*local_address(silent), server_->address()}, kKey,
                                     60 * kSecond, clock_);
  Accepted visitor;
  ASSERT_TRUE(turn_until([&] {
    EXPECT_EQ(worker->progress(&error_), Status::kAgain);
    return accept_one(silent, &visitor, &error_) == Status::kOk;
  }));
  for (int i = 0; i < 3; ++i) ASSERT_EQ(worker->progress(&error_), Status::kAgain);
  EXPECT_EQ(server_->connections(), 0u);
  clock_.pass(times::kGreetingTry);
  EXPECT_EQ(worker->progress(&error_), Status::kAgain);  // it pauses
  clock_.pass(times::kSwitchRedial);
  EXPECT_EQ(finish(*worker), Status::kOk) << error_.what;
  EXPECT_EQ(server_->connections(), 1u);
}

// The network has kept its request back for longer than the switch waits.
TEST_F(HostileControlTest, AClientThatWasLateTriesAgain) {
  start(kKey);
  auto worker = client(kKey);
  ASSERT_EQ(finish(*worker), Status::kOk) << error_.what;
  clock_.pass(5 * kSecond);
  ASSERT_TRUE(turn_until([&] { return server_->connections() == 0; }));
  EXPECT_EQ(counters().connections_late.get(), 1u);
  ASSERT_EQ(worker->post(wanted(), 5 * kSecond, &error_), Status::kOk);
  ASSERT_TRUE(turn_until([&] {
    EXPECT_EQ(worker->progress(&error_), Status::kAgain) << error_.what;
    return worker->descriptor() < 0 || HasFailure();  // it pauses
  }));
  clock_.pass(times::kSwitchRedial);
  ASSERT_EQ(finish(*worker), Status::kOk) << error_.what;
  EXPECT_TRUE(std::holds_alternative<control::JobGrant>(worker->answer()));
}

TEST_F(HostileControlTest, SilenceBeforeTheFirstRequestHasADeadline) {
  start(kKey);
  Stranger silent(server_->address()), greeted(server_->address());
  greeted.send(control::encode(control::Hello{}, 0));
  ASSERT_TRUE(turn_until([&] {
    greeted.receive();
    return greeted.last().has_value() && server_->connections() == 2;
  }));
  clock_.pass(5 * kSecond);
  EXPECT_TRUE(is_closed(silent));
  EXPECT_TRUE(is_closed(greeted));
  EXPECT_EQ(counters().connections_late.get(), 2u);
}

TEST_F(HostileControlTest, ASlowRequestHasADeadline) {
  start(SecretKey());
  Stranger slow(server_->address());
  slow.send(control::encode(control::Hello{}, 0));
  slow.send(control::encode(control::Report{}, 1));
  ASSERT_TRUE(turn_until([&] {
    slow.receive();
    const auto last = slow.last();
    return last && std::holds_alternative<control::Text>(*last);
  }));
  const auto request = control::encode(control::Report{}, 2);
  for (size_t i = 0; i < request.size() && !slow.closed; ++i) {  // a byte in half a second
    slow.send(std::span(request).subspan(i, 1));
    turn_until([left = 3]() mutable { return --left == 0; });
    clock_.pass(500 * kMs);
    turn_until([left = 3]() mutable { return --left == 0; });
    slow.receive();
    ASSERT_LE(i, 12u);
  }
  EXPECT_TRUE(slow.closed);
  EXPECT_EQ(server_->connections(), 0u);
}

}  // namespace
}  // namespace slime::net
