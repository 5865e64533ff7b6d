// What keeps tenants apart: a key for each, handles that nobody guesses, and what operators alone
// do.
#include "test/switch/control_server.h"

namespace slime::net {
namespace {

using control::Message;
using control::Refusal;
using control::Refused;
using control::State;
using test::key_of;
using test::kKey;
using test::kSecond;
using test::wanted;
using testing::HasSubstr;

const SecretKey kPhysics = key_of("the key of physics, 32 bytes long");
const SecretKey kChemistry = key_of("the key of chemistry, long enough");

class TenantsTest : public test::ControlServerFixture {
 protected:
  void SetUp() override {
    ServerOptions options;
    options.keys = ring();
    start(options);
  }
  static KeyRing ring() {
    return {kKey,
            std::map<std::string, SecretKey>{{"physics", kPhysics}, {"chemistry", kChemistry}}};
  }
  // What a connection with this key under this name is told.
  std::string turned_away(const SecretKey& key, const std::string& tenant) {
    auto other = client(key, tenant);
    return std::get<Refused>(ask(*other, wanted())).text;
  }
  State state(SwitchClient& who, const control::JobRef& job) {
    return std::get<control::JobState>(ask(who, control::Heartbeat{job})).state;
  }
};

TEST_F(TenantsTest, ATenantReachesItsOwnJobsOnly) {
  auto physics = client(kPhysics, "physics"), chemistry = client(kChemistry, "chemistry");
  const auto job = std::get<control::JobGrant>(ask(*physics, wanted())).job;
  EXPECT_EQ(state(*chemistry, job), State::kGone) << "and it knows the handle";
  EXPECT_TRUE(std::holds_alternative<control::Done>(ask(*chemistry, control::CloseJob{job})));
  EXPECT_EQ(driver_.jobs.size(), 1u) << "closed another's";
  clock_.pass(kSecond);
  const auto refused = std::get<Refused>(ask(*chemistry, control::Fence{job, false}));
  EXPECT_EQ(refused.why, Refusal::kNoJob);
  EXPECT_EQ(refused.text, "there is no job " + std::to_string(job.job)) << "tells that it is there";
  EXPECT_EQ(state(*physics, job), State::kAlive);
  EXPECT_TRUE(std::holds_alternative<control::Done>(ask(*physics, control::CloseJob{job})));
  EXPECT_TRUE(driver_.jobs.empty());
}

TEST_F(TenantsTest, WhatIsForOperatorsIsRefusedToTenants) {
  auto physics = client(kPhysics, "physics");
  const auto job = std::get<control::JobGrant>(ask(*physics, wanted())).job;
  clock_.pass(kSecond);
  for (const Message& request : {Message(control::Drain{true}), Message(control::Report{true}),
                                 Message(control::Fence{{{}, job.job, 0}, true})}) {
    const auto refused = std::get<Refused>(ask(*physics, request));
    EXPECT_EQ(refused.why, Refusal::kForbidden);
    EXPECT_THAT(physics->error_of(refused, control::type_of(request)).what,
                HasSubstr("use the operators' key (control.key_file"));
  }
  EXPECT_FALSE(controller_->draining());
  EXPECT_EQ(counters().forbidden.get(), 3u);
  auto someone = client(kKey);
  EXPECT_TRUE(std::holds_alternative<control::Text>(ask(*someone, control::Report{})));
  EXPECT_TRUE(std::holds_alternative<control::Done>(ask(*someone, control::Drain{true})));
  EXPECT_TRUE(controller_->draining());
}

TEST_F(TenantsTest, NobodyAsksInAnothersName) {
  auto chemistry = client(kChemistry, "chemistry");
  const auto refused = std::get<Refused>(ask(*chemistry, wanted()));
  EXPECT_EQ(refused.why, Refusal::kForbidden);
  EXPECT_EQ(refused.text, "tenant chemistry asks for a job of tenant physics");
  control::JoinTree join{
      .tree = 1, .contributors = 4, .workers = 2, .branches = 2, .part = wanted()};
  EXPECT_EQ(std::get<Refused>(ask(*chemistry, join)).why, Refusal::kForbidden);
  EXPECT_TRUE(driver_.jobs.empty());
}

TEST_F(TenantsTest, AConnectionProvesTheKeyOfTheTenantThatItNames) {
  EXPECT_THAT(turned_away(kChemistry, "physics"),
              HasSubstr("not signed with the key of tenant physics"));
  EXPECT_THAT(turned_away(kKey, "physics"), HasSubstr("not signed with the key of tenant physics"));
  EXPECT_THAT(turned_away(kPhysics, ""), HasSubstr("not signed with this switch's key"));
  EXPECT_THAT(turned_away(kPhysics, "biology"),
              HasSubstr("not signed with the key of tenant biology"))
      << "told apart from a wrong key";
  EXPECT_EQ(counters().unauthorized.get(), 4u);
}

TEST_F(TenantsTest, HandlesAreNotGuessed) {
  auto physics = client(kPhysics, "physics");
  const auto first = std::get<control::JobGrant>(ask(*physics, wanted())).job;
  const auto second = std::get<control::JobGrant>(ask(*physics, wanted())).job;
  size_t alike = 0;
  for (size_t i = 0; i < first.id.size(); ++i) alike += first.id[i] == second.id[i] ? 1 : 0;
  EXPECT_LT(alike, 8u) << "of 16 bytes";
  for (size_t i = 0; i < first.id.size(); ++i) {
    control::JobRef guess = first;
    guess.id[i] ^= std::byte{1};
    EXPECT_EQ(state(*physics, guess), State::kGone) << i;
  }
  EXPECT_EQ(state(*physics, first), State::kAlive);
}

TEST_F(TenantsTest, NewKeysEndTheConnectionsOfOldOnes) {
  auto physics = client(kPhysics, "physics"), chemistry = client(kChemistry, "chemistry");
  const auto job = std::get<control::JobGrant>(ask(*physics, wanted())).job;
  ASSERT_EQ(finish(*chemistry), Status::kOk);
  KeyRing keys = ring();
  keys.tenants->erase("chemistry");
  server_->set_keys(keys);
  EXPECT_EQ(server_->connections(), 1u);
  EXPECT_EQ(state(*physics, job), State::kAlive);
  keys.tenants->at("physics") = kChemistry;
  server_->set_keys(keys);
  EXPECT_EQ(server_->connections(), 0u);
  EXPECT_EQ(driver_.jobs.size(), 1u) << "its lease decides";
  EXPECT_EQ(turned_away(kPhysics, "physics").find("CONNECTION"), 0u);
}

// With one key for all a name is only a name, and still keeps accidents apart.
TEST_F(TenantsTest, WithOneKeyNamesStillCount) {
  start(kKey);
  auto physics = client(kKey, "physics"), chemistry = client(kKey, "chemistry");
  const auto job = std::get<control::JobGrant>(ask(*physics, wanted())).job;
  EXPECT_EQ(state(*chemistry, job), State::kGone);
  EXPECT_EQ(std::get<Refused>(ask(*chemistry, control::Drain{true})).why, Refusal::kForbidden);
}

}  // namespace
// A tenant that fills the table with connections, each of which has made a request that counts.
TEST_F(TenantsTest, OneTenantLeavesPlacesToOthersAndToOperators) {
  constexpr size_t kMost = 256;
  std::vector<std::unique_ptr<SwitchClient>> hoard;
  while (hoard.size() < kMost) {
    hoard.push_back(client(kPhysics, "physics"));
    const auto answer = ask(*hoard.back(), control::Heartbeat{});
    ASSERT_TRUE(std::holds_alternative<control::JobState>(answer)) << hoard.size();
  }
  EXPECT_EQ(server_->connections(), kMost);
  auto one_more = client(kPhysics, "physics");
  const auto refused = std::get<Refused>(ask(*one_more, control::Heartbeat{}));
  EXPECT_EQ(refused.why, Refusal::kFull);
  EXPECT_THAT(refused.text, HasSubstr("all 256 control connections (control.max_connections)"));
  EXPECT_THAT(refused.text, HasSubstr("tenant physics has 256"));
  one_more.reset();
  ASSERT_TRUE(turn_until([&] { return server_->connections() == kMost; }));

  auto chemistry = client(kChemistry, "chemistry");
  auto job = wanted();
  job.tenant = "chemistry";
  EXPECT_TRUE(std::holds_alternative<control::JobGrant>(ask(*chemistry, job)));
  auto someone = client(kKey);
  EXPECT_TRUE(std::holds_alternative<control::Text>(ask(*someone, control::Report{})));
  EXPECT_LE(server_->connections(), kMost);
  EXPECT_EQ(counters().connections_refused.get(), 3u) << "physics: one refused, two reset";
  EXPECT_TRUE(std::holds_alternative<control::JobState>(ask(*hoard.back(), control::Heartbeat{})));
}

// A tenant takes places of others only up to an equal share, so that two do not take each other's
// in turn; operators take any tenant's.
TEST_F(TenantsTest, PlacesAreTakenFromTheTenantThatHasTheMost) {
  ServerOptions options;
  options.keys = ring();
  options.max_connections = 5;
  start(options);
  std::vector<std::unique_ptr<SwitchClient>> all;
  // What one more connection of this tenant gets: "" is a place.
  const auto come = [&](const SecretKey& key, const std::string& tenant) -> std::string {
    all.push_back(client(key, tenant));
    const auto answer = ask(*all.back(), control::Heartbeat{});
    const auto* refused = std::get_if<Refused>(&answer);
    return refused == nullptr ? "" : refused->text;
  };
  for (int i = 0; i < 5; ++i) EXPECT_EQ(come(kPhysics, "physics"), "");
  EXPECT_EQ(come(kChemistry, "chemistry"), "");
  EXPECT_EQ(come(kChemistry, "chemistry"), "");
  EXPECT_THAT(come(kChemistry, "chemistry"), HasSubstr("tenant chemistry has 2"));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(come(kKey, ""), "") << i;
  EXPECT_THAT(come(kKey, ""), HasSubstr("the operators have 5"));
  EXPECT_THAT(come(kPhysics, "physics"), HasSubstr("all 5 control connections"));
}

}  // namespace slime::net
