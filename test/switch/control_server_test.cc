// The control channel over TCP: what well-meaning clients see.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <thread>

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

class ControlServerTest : public test::ControlServerFixture {};

TEST_F(ControlServerTest, AJobFromBeginningToEnd) {
  for (const SecretKey& key : {kKey, SecretKey()}) {
    start(key);
    auto worker = client(key);
    const auto grant = std::get<control::JobGrant>(ask(*worker, wanted()));
    EXPECT_EQ(driver_.jobs.size(), 1u);
    const auto alive = std::get<control::JobState>(ask(*worker, control::Heartbeat{grant.job}));
    EXPECT_EQ(alive.state, control::State::kAlive);
    clock_.pass(kSecond);
    const auto fenced = std::get<control::JobState>(ask(*worker, control::Fence{grant.job, false}));
    EXPECT_EQ(fenced.generation, static_cast<uint8_t>(grant.job.generation + 1));
    const auto text = std::get<control::Text>(ask(*worker, control::Report{true})).text;
    EXPECT_THAT(text, HasSubstr("\"tenant\":\"physics\""));
    auto ref = grant.job;
    ref.generation = fenced.generation;
    EXPECT_TRUE(std::holds_alternative<control::Done>(ask(*worker, control::CloseJob{ref})));
    EXPECT_TRUE(driver_.jobs.empty());
    EXPECT_EQ(worker->post(control::Drain{true}, kSecond, &error_), Status::kOk);
    EXPECT_EQ(worker->post(control::Drain{true}, kSecond, &error_), Status::kAgain);
    EXPECT_EQ(finish(*worker), Status::kOk);
  }
}

TEST_F(ControlServerTest, ARefusalIsAnAnswer) {
  start(kKey);
  auto worker = client(kKey);
  auto job = wanted();
  job.formats_wanted = job.formats_least = sap::kKnownFormats;
  job.children[1] = job.children[0];
  const auto refused = std::get<Refused>(ask(*worker, job));
  EXPECT_EQ(refused.why, Refusal::kShape);
  const Error error = worker->error_of(refused, control::Type::kCreateJob);
  EXPECT_THAT(error.what, HasSubstr(server_->address().to_string()));
  EXPECT_THAT(error.what, HasSubstr("create a job"));
  EXPECT_TRUE(std::holds_alternative<control::JobGrant>(ask(*worker, wanted())));
}

TEST_F(ControlServerTest, ASilentClientIsForgottenAtLast) {
  start(kKey);
  auto worker = client(kKey);
  (void)ask(*worker, control::Report{});
  clock_.pass(119 * kSecond);
  server_->run();
  EXPECT_EQ(server_->connections(), 1u);
  clock_.pass(kSecond);
  server_->run();
  EXPECT_EQ(server_->connections(), 0u);
  EXPECT_THAT(std::get<Refused>(ask(*worker, control::Report{})).text, HasSubstr("CONNECTION"));
}

TEST_F(ControlServerTest, MoreConnectionsThanPlacesAreRefused) {
  ServerOptions options;
  options.max_connections = 3;
  start(options);
  std::vector<std::unique_ptr<SwitchClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(client(SecretKey()));
    ASSERT_TRUE(std::holds_alternative<control::Text>(ask(*clients.back(), control::Report{})));
  }
  auto fourth = client(SecretKey());
  const auto refused = std::get<Refused>(ask(*fourth, control::Report{}));
  EXPECT_EQ(refused.why, Refusal::kFull);
  EXPECT_THAT(refused.text, HasSubstr("all 3 control connections"));
  fourth.reset();
  EXPECT_EQ(counters().connections_refused.get(), 1u);
  clients.pop_back();
  ASSERT_TRUE(turn_until([&] { return server_->connections() == 2; }));
  auto fifth = client(SecretKey());
  EXPECT_EQ(finish(*fifth), Status::kOk);
}

TEST_F(ControlServerTest, OutOfDescriptorsItWaitsInsteadOfSpinning) {
  start(SecretKey());
  Stranger waiting(server_->address());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit tight{static_cast<rlim_t>(waiting.fd.get() + 1), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
  server_->run();
  pollfd ready{server_->descriptor(), POLLIN, 0};
  const int busy = poll(&ready, 1, 0);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(busy, 0);
  EXPECT_EQ(server_->connections(), 0u);
  clock_.pass(100 * kMs);
  EXPECT_TRUE(turn_until([&] { return server_->connections() == 1; }));
}

TEST_F(ControlServerTest, LeasesEndWithoutAnybodyAsking) {
  start(kKey);
  auto worker = client(kKey);
  const auto grant = std::get<control::JobGrant>(ask(*worker, wanted()));
  EXPECT_EQ(grant.lease_ms, 10000u);
  clock_.pass(9'999 * kMs);
  EXPECT_LE(server_->timeout_ms(), 2);
  server_->run();
  EXPECT_EQ(driver_.jobs.size(), 1u);
  clock_.pass(kMs);
  server_->run();
  EXPECT_TRUE(driver_.jobs.empty());
  const auto state = std::get<control::JobState>(ask(*worker, control::Heartbeat{grant.job}));
  EXPECT_EQ(state.state, control::State::kGone);
}

TEST_F(ControlServerTest, ClientsThatNobodyAnswersGiveUp) {
  const Fd listener = listen_on(SocketAddress::parse("127.0.0.1").value()).value();
  auto worker =
      SwitchClient::start(local_address(listener).value(), kKey, 5 * kSecond, clock_).value();
  EXPECT_EQ(worker->progress(&error_), Status::kAgain);
  clock_.pass(5 * kSecond);
  EXPECT_EQ(worker->progress(&error_), Status::kTimeout);
  EXPECT_THAT(error_.what, HasSubstr("did not greet in time"));
  EXPECT_EQ(worker->progress(&error_), Status::kTimeout) << "and stay with that";
}

// The calls that wait, with the server in a thread of its own, as tools and daemon are.
TEST_F(ControlServerTest, WaitingCalls) {
  start(kKey);
  std::atomic<bool> stop{false};
  std::thread serving([&] {
    while (!stop) {
      pollfd ready{server_->descriptor(), POLLIN, 0};
      (void)poll(&ready, 1, 5);
      server_->run();
    }
  });
  const auto opened = SwitchClient::open(server_->address(), kKey, 10 * kSecond);
  ASSERT_TRUE(opened) << opened.error().what;
  SwitchClient& client = **opened;
  const auto grant = client.create_job(wanted(), 10 * kSecond);
  EXPECT_TRUE(grant) << grant.error().what;
  if (grant) {
    EXPECT_EQ(client.heartbeat(grant->job, 10 * kSecond)->state, control::State::kAlive);
    const auto busy = client.fence_number(grant->job.job, 10 * kSecond);
    EXPECT_FALSE(busy);
    EXPECT_EQ(busy.error().code, static_cast<int>(Refusal::kBusy));
    EXPECT_TRUE(client.report(true, 10 * kSecond));
    EXPECT_TRUE(client.drain(true, 10 * kSecond));
    EXPECT_EQ(client.create_job(wanted(), 10 * kSecond).error().status, Status::kRemote);
    EXPECT_TRUE(client.close_job(grant->job, 10 * kSecond));
  }
  stop = true;
  serving.join();
  const SocketAddress gone = server_->address();
  server_.reset();
  const auto nobody = SwitchClient::open(gone, kKey, kSecond);
  ASSERT_FALSE(nobody);
  EXPECT_THAT(nobody.error().what, HasSubstr("switch " + gone.to_string()));
}

}  // namespace
}  // namespace slime::net
