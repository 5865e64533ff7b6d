// The way back to a switch, against one in this process.
#include "collnet/comm/lease.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "settings/times.h"
#include "test/support/local_switch.h"
#include "test/support/odd_switch.h"
#include "test/support/unused_address.h"

namespace slime {
namespace {

constexpr uint64_t kSoonNs = 1'000'000, kPatienceNs = 60'000'000'000;

uint64_t now() { return SteadyClock::instance().now_ns(); }

control::CreateJob a_job() {
  control::CreateJob job;
  job.tenant = "default";
  job.formats_wanted = job.formats_least = sap::kKnownFormats;
  job.slots_wanted = job.slots_least = 16;
  job.lanes_wanted = job.lanes_least = 64;
  job.children = {SocketAddress::parse("127.0.0.1:40000").value()};
  return job;
}

// Where there is no tree, the part is all.
control::JoinTree whole(control::CreateJob job) { return {.part = std::move(job)}; }

control::JoinTree a_part() {
  control::JoinTree part{
      .tree = 1, .contributors = 2, .workers = 1, .branches = 2, .part = a_job()};
  return part;
}

LeaseTerms terms_for(const std::string& address) {
  return {.addresses = SocketAddress::parse(address).value(), .who = {}, .job = {}, .lease_ms = 0};
}

template <typename Condition>
bool poll_until(Reattachment* way, Condition condition, uint64_t limit_ns = kPatienceNs) {
  const uint64_t end_ns = now() + limit_ns;
  while (!condition() && now() < end_ns) {
    way->poll(now());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return condition();
}

nlohmann::json report_of(const std::string& address) {
  auto client = SwitchClient::open(SocketAddress::parse(address).value(), {}, kPatienceNs).value();
  return nlohmann::json::parse(client->report(true, kPatienceNs).value().text);
}
size_t jobs_at(const std::string& address) { return report_of(address)["jobs"].size(); }
int counter_of(const std::string& address, const char* name) {
  return report_of(address)["control"].value(name, 0);
}

TEST(Reattachment, WaitsForASwitchToComeBack) {
  const std::string address = test::unused_address();
  Reattachment way(terms_for(address), whole(a_job()), kSoonNs, now());
  EXPECT_FALSE(poll_until(
      &way, [&] { return way.grant().has_value(); }, 50'000'000));
  const LocalSwitch back({.listen = address});
  ASSERT_TRUE(poll_until(&way, [&] { return way.grant().has_value(); }));
  EXPECT_TRUE(way.granted(now())) << "nobody else has to hear of it";
  EXPECT_EQ(way.grant()->slots, 16u);
  // One that was granted too late for it goes when its lease has run out.
  EXPECT_TRUE(poll_until(&way, [&] { return jobs_at(address) == 1; }));
}

TEST(Reattachment, ClosesWhatItIsNotToKeep) {
  const LocalSwitch there;
  Reattachment way(terms_for(there.address()), whole(a_job()), kSoonNs, now());
  ASSERT_TRUE(poll_until(&way, [&] { return way.grant().has_value(); }));
  way.give_back(make_error(Status::kRemote, 0, "the others got nothing"), now() + 60 * kPatienceNs);
  EXPECT_FALSE(way.grant());
  EXPECT_TRUE(poll_until(&way, [&] { return jobs_at(there.address()) == 0; }))
      << "not only when its lease has run out";
  {
    Reattachment other(terms_for(there.address()), whole(a_job()), kSoonNs, now());
    ASSERT_TRUE(poll_until(&other, [&] { return other.grant().has_value(); }));
  }
  EXPECT_EQ(jobs_at(there.address()), 0u);
}

// The job needs all formats, and this switch has two.
TEST(Reattachment, ASwitchWithFewerFormatsIsNotUsed) {
  const LocalSwitch words({.formats = sap::kWordFormats});
  Reattachment way(terms_for(words.address()), whole(a_job()), kSoonNs, now());
  EXPECT_TRUE(poll_until(&way, [&] { return counter_of(words.address(), "jobs_refused") > 1; }));
  EXPECT_FALSE(way.grant());
}

TEST(Reattachment, AJobOfAnotherShapeIsNotUsed) {
  const control::CreateJob wanted = a_job();
  const control::JobGrant right{.job = {},
                                .token = 1,
                                .address = SocketAddress::parse("127.0.0.1:9").value(),
                                .slots = wanted.slots_wanted,
                                .lanes = wanted.lanes_wanted,
                                .formats = wanted.formats_wanted,
                                .lease_ms = 60'000};
  const auto is_used = [&](auto change) {
    control::JobGrant grant = right;
    change(grant);
    const test::OddSwitch odd(grant);
    Reattachment way(terms_for(odd.address()), whole(wanted), kSoonNs, now());
    EXPECT_TRUE(poll_until(&way, [&] { return way.grant() || odd.granted() > 1; }));
    return way.grant().has_value();
  };
  EXPECT_TRUE(is_used([](auto&) {}));
  EXPECT_FALSE(is_used([](auto& grant) { --grant.slots; }));
  EXPECT_FALSE(is_used([](auto& grant) { --grant.lanes; }));
  EXPECT_FALSE(is_used([](auto& grant) { grant.formats = sap::kWordFormats; }));
}

// A switch's number must not make this rank send heartbeats without a pause.
TEST(Lease, AShortLeaseHasAFewHeartbeatsOnly) {
  const test::OddSwitch odd({});
  LeaseTerms terms = terms_for(odd.address());
  terms.lease_ms = 1;
  auto client = SwitchClient::open(terms.addresses, {}, kPatienceNs).value();
  const uint64_t begin_ns = now();
  {
    const Lease lease(terms, std::move(client), Housekeeper::get("a test", {}).value());
    while (odd.heartbeats() < 2 && now() - begin_ns < kPatienceNs) usleep(1000);
    usleep(100'000);
  }
  const auto most = static_cast<int>((now() - begin_ns) / times::kLeastHeartbeatPause);
  EXPECT_GE(odd.heartbeats(), 2);
  EXPECT_LE(odd.heartbeats(), most);
  EXPECT_EQ(times::heartbeat_pause(30 * times::kSecond), 10 * times::kSecond);
  EXPECT_EQ(times::heartbeat_pause(UINT32_MAX * times::kMillisecond),
            times::kLongestHeartbeatPause);
}

TEST(Reattachment, OnATreeItWaitsToBeTold) {
  const LocalSwitch no_leaf;  // so it refuses, when asked
  const std::string address = no_leaf.address();
  Reattachment first(terms_for(address), a_part(), kSoonNs, now());
  Reattachment other(terms_for(address), a_part(), Reattachment::kWhenTold, now());
  ASSERT_TRUE(poll_until(&first, [&] { return first.leaf_ready(); }));
  EXPECT_FALSE(poll_until(
      &other, [&] { return other.leaf_ready(); }, 50'000'000));
  first.ask_now(2, now());
  EXPECT_FALSE(first.leaf_ready());
  EXPECT_TRUE(poll_until(&first, [&] { return first.leaf_ready(); })) << "refused, and there again";
  EXPECT_FALSE(first.grant());
}

// Its leaf is a little later than the others', who wait.
TEST(Reattachment, OnATreeItTriesAgainWhileTheOthersWait) {
  const std::string address = test::unused_address();
  Reattachment way(terms_for(address), a_part(), Reattachment::kWhenTold, now());
  way.ask_now(2, now());
  EXPECT_FALSE(poll_until(
      &way, [&] { return way.grant().has_value(); }, 200'000'000));
  const LocalSwitch back({.listen = address});
  EXPECT_TRUE(poll_until(&way, [&] { return counter_of(address, "jobs_refused") > 0; }));
}

}  // namespace
}  // namespace slime
