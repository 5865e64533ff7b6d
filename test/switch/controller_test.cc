// Jobs, leases, generations, quotas: the controller with a virtual clock and a switch without
// packets.
#include "switch/controller/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "switch/core/slots.h"
#include "test/switch/control_support.h"

namespace slime::net {
namespace {

using control::JobGrant;
using control::JobState;
using control::Message;
using control::Refusal;
using control::Refused;
using control::State;
using test::kMs;
using test::kSecond;
using test::wanted;
using testing::HasSubstr;

class ControllerTest : public testing::Test {
 protected:
  void start(ControllerOptions options) {
    controller_ = std::make_unique<Controller>(driver_, std::move(options), clock_);
  }
  void SetUp() override { start({.max_jobs = 8, .seed = 42}); }

  JobGrant create(const control::CreateJob& job = wanted()) {
    const Message answer = controller_->handle(job);
    const auto* refused = std::get_if<Refused>(&answer);
    EXPECT_EQ(refused, nullptr) << refused->text;
    return refused == nullptr ? std::get<JobGrant>(answer) : JobGrant{};
  }
  Refused refusal(const Message& request) {
    const Message answer = controller_->handle(request);
    EXPECT_TRUE(std::holds_alternative<Refused>(answer));
    const auto* refused = std::get_if<Refused>(&answer);
    return refused != nullptr ? *refused : Refused{};
  }
  JobState state(const Message& request) {
    return std::get<JobState>(controller_->handle(request));
  }
  bool closed(const control::JobRef& ref) {
    return std::holds_alternative<control::Done>(controller_->handle(control::CloseJob{ref}));
  }
  void pass(uint64_t ns) {
    clock_.pass(ns);
    controller_->expire(clock_.now_ns());
  }

  test::ManualClock clock_;
  test::FakeDriver driver_;
  std::unique_ptr<Controller> controller_;
};

TEST_F(ControllerTest, GrantsWhatIsWanted) {
  const JobGrant grant = create(wanted(3, 16));
  EXPECT_EQ(grant.address, driver_.shape_.address);
  EXPECT_EQ(grant.shards, 4u);
  EXPECT_EQ(grant.slots, 16u);
  EXPECT_EQ(grant.lanes, 64u);
  EXPECT_EQ(grant.lease_ms, 30000u);
  ASSERT_EQ(driver_.jobs.size(), 1u);
  const JobSpec& spec = driver_.jobs.at(grant.job.job);
  EXPECT_EQ(spec.generation, grant.job.generation);
  EXPECT_EQ(spec.slots, 16u);
  EXPECT_EQ(spec.max_lanes, 64u);
  EXPECT_EQ(spec.formats, 1u);
  EXPECT_EQ(grant.formats, 1u);
  EXPECT_EQ(spec.children, wanted(3).children);
}

TEST_F(ControllerTest, GrantsFewerSlotsWhereMemoryEnds) {
  const uint64_t each = Slots::bytes_for(1, 64);
  driver_.shape_.slot_bytes = 10 * each + each / 2;
  start({});
  EXPECT_EQ(create(wanted(2, 6)).slots, 6u);
  auto second = wanted(2, 6);
  second.slots_least = 5;
  const Refused refused = refusal(second);
  EXPECT_EQ(refused.why, Refusal::kMemory);
  EXPECT_THAT(refused.text, HasSubstr("at least 5 slots of 64 lanes need"));
  second.slots_least = 4;
  EXPECT_EQ(create(second).slots, 4u);
  EXPECT_EQ(refusal(wanted()).why, Refusal::kMemory);
  EXPECT_EQ(controller_->usage().slot_bytes, 10 * each);
}

TEST_F(ControllerTest, GrantsFewerLanesThanWantedButNotThanNeeded) {
  auto job = wanted();
  job.lanes_wanted = 1000;
  EXPECT_EQ(create(job).lanes, 256u);
  job.lanes_least = 257;
  EXPECT_EQ(refusal(job).why, Refusal::kShape);
}

TEST_F(ControllerTest, GrantsFewerFormatsThanWantedButNotThanNeeded) {
  driver_.shape_.formats = sap::kWordFormats;
  start({});
  auto job = wanted();
  job.formats_wanted = sap::kKnownFormats;
  const JobGrant grant = create(job);
  EXPECT_EQ(grant.formats, sap::kWordFormats);
  EXPECT_EQ(driver_.jobs.at(grant.job.job).formats, sap::kWordFormats);
  job.formats_least = 0b101;
  const Refused refused = refusal(job);
  EXPECT_EQ(refused.why, Refusal::kShape);
  EXPECT_THAT(refused.text,
              HasSubstr("needs the formats i16 too, and this switch adds up i32, u32 only"));
}

TEST_F(ControllerTest, RefusesChildrenThatCannotBe) {
  const char* bad[] = {"127.0.0.1:9000", "0.0.0.0:1",       "10.0.0.1:0",  "224.0.0.1:5",
                       "[::1]:9000",     "127.0.0.1:28880", "[ff02::1]:1", "255.255.255.255:9"};
  for (const char* text : bad) {
    auto job = wanted(1);
    job.children.push_back(SocketAddress::parse(text).value());
    const Refused refused = refusal(job);
    EXPECT_EQ(refused.why, Refusal::kShape) << text;
    EXPECT_THAT(refused.text, HasSubstr("child 1"));
  }
  EXPECT_TRUE(driver_.jobs.empty());
}

TEST_F(ControllerTest, HoldsTenantsToTheirQuotas) {
  const uint64_t each = Slots::bytes_for(1, 64);
  start({.default_quota = {.max_jobs = 0, .max_slot_bytes = 0},
         .tenants = {{"physics", {.max_jobs = 2, .max_slot_bytes = 20 * each}}}});
  create(wanted(2, 16));
  auto large = wanted(2, 16);
  large.slots_least = 5;
  EXPECT_EQ(refusal(large).why, Refusal::kQuota);
  EXPECT_EQ(create(wanted(2, 16)).slots, 4u);
  EXPECT_THAT(refusal(wanted()).text, HasSubstr("tenant physics has 2 jobs and may have 2"));
  auto stranger = wanted();
  stranger.tenant = "somebody";
  EXPECT_EQ(refusal(stranger).why, Refusal::kQuota);
}

TEST_F(ControllerTest, BoundsTheNumberOfJobs) {
  for (int i = 0; i < 8; ++i) create(wanted(2, 1));
  EXPECT_EQ(refusal(wanted(2, 1)).why, Refusal::kMemory);
  EXPECT_EQ(driver_.jobs.size(), 8u);
}

TEST_F(ControllerTest, HeartbeatsKeepAJobAndSilenceEndsIt) {
  const JobGrant kept = create(), lost = create();
  for (int i = 0; i < 5; ++i) {
    pass(20 * kSecond);
    EXPECT_EQ(state(control::Heartbeat{kept.job}).state, State::kAlive);
  }
  EXPECT_EQ(driver_.jobs.count(kept.job.job), 1u);
  EXPECT_EQ(driver_.jobs.count(lost.job.job), 0u);
  EXPECT_EQ(state(control::Heartbeat{lost.job}).state, State::kGone);
  EXPECT_EQ(controller_->counters().jobs_expired.get(), 1u);
  EXPECT_EQ(controller_->next_expiry_ns(), clock_.now_ns() + 30 * kSecond);
  pass(30 * kSecond - 1);
  EXPECT_EQ(driver_.jobs.size(), 1u);
  pass(1);
  EXPECT_TRUE(driver_.jobs.empty());
  EXPECT_EQ(controller_->next_expiry_ns(), UINT64_MAX);
}

TEST_F(ControllerTest, ChildrenOnSeveralRails) {
  auto job = wanted(6);
  job.rails = 3;
  const JobGrant grant = create(job);
  EXPECT_EQ(driver_.jobs.at(grant.job.job).rails, 3u);
  EXPECT_EQ(driver_.jobs.at(grant.job.job).children, job.children);
  EXPECT_THAT(report_json(*controller_, false),
              HasSubstr(R"("rails":3,"children":["127.0.0.1:9000","127.0.0.1:9001"])"));
  job.children[5] = job.children[0];
  EXPECT_THAT(refusal(job).text, HasSubstr("child 1 on rail 2, 127.0.0.1:9000, is there twice"));
  job.children.resize(5);
  EXPECT_EQ(refusal(job).why, Refusal::kShape);
}

TEST_F(ControllerTest, OnlyTheFirstOfManyFencesCounts) {
  const JobGrant grant = create();
  pass(kSecond);
  const JobState first = state(control::Fence{grant.job, false});
  EXPECT_EQ(first.generation, static_cast<uint8_t>(grant.job.generation + 1));
  EXPECT_EQ(state(control::Fence{grant.job, false}).generation, first.generation);
  EXPECT_EQ(driver_.jobs.at(grant.job.job).generation, first.generation);
  EXPECT_EQ(controller_->counters().fences.get(), 1u);
  const JobState late = state(control::Heartbeat{grant.job});
  EXPECT_EQ(late.state, State::kFenced);
  EXPECT_EQ(late.generation, first.generation);
  EXPECT_EQ(refusal(control::CloseJob{grant.job}).why, Refusal::kNoJob);
}

TEST_F(ControllerTest, EachGenerationHasATokenOfItsOwn) {
  const JobGrant grant = create(), other = create();
  EXPECT_NE(grant.token, other.token);
  EXPECT_EQ(driver_.jobs.at(grant.job.job).token, grant.token);
  pass(kSecond);
  (void)state(control::Fence{grant.job, false});
  EXPECT_NE(driver_.jobs.at(grant.job.job).token, grant.token);
  EXPECT_EQ(driver_.jobs.at(other.job.job).token, other.token);
}

TEST_F(ControllerTest, AFencedGenerationDoesNotKeepTheJob) {
  const JobGrant grant = create();
  pass(kSecond);
  (void)state(control::Fence{grant.job, false});
  for (int i = 0; i < 4; ++i) {
    pass(10 * kSecond);
    (void)state(control::Heartbeat{grant.job});
  }
  EXPECT_TRUE(driver_.jobs.empty());
}

TEST_F(ControllerTest, GenerationsKeepTheirDistance) {
  const JobGrant grant = create();
  const control::Fence by_operator{{{}, grant.job.job, 0}, true};
  const Refused refused = refusal(by_operator);
  EXPECT_EQ(refused.why, Refusal::kBusy);
  EXPECT_THAT(refused.text, HasSubstr("in 501 ms"));
  uint64_t passed = 0;
  for (int i = 0; i < 256; ++i) {
    while (std::holds_alternative<Refused>(controller_->handle(by_operator))) {
      clock_.pass(50 * kMs);
      passed += 50 * kMs;
    }
  }
  EXPECT_EQ(driver_.jobs.at(grant.job.job).generation, grant.job.generation);
  EXPECT_GE(passed, 120 * kSecond);
}

TEST_F(ControllerTest, NumbersComeBackWithTheNextGeneration) {
  start({.max_jobs = 3, .job_numbers = 3});
  std::map<uint16_t, uint8_t> last;
  for (int i = 0; i < 30; ++i) {
    const control::JobRef ref = create().job;
    if (last.count(ref.job) != 0) {
      EXPECT_EQ(ref.generation, static_cast<uint8_t>(last[ref.job] + 1));
    }
    last[ref.job] = ref.generation;
    EXPECT_TRUE(closed(ref));
    EXPECT_TRUE(closed(ref)) << "again, because the answer may have been lost";
    if (i % 3 == 2) clock_.pass(kSecond);
  }
  EXPECT_EQ(last.size(), 3u);
}

TEST_F(ControllerTest, AnOldJobIsNotMistakenForItsSuccessor) {
  start({.max_jobs = 1, .job_numbers = 1});
  const control::JobRef old = create().job;
  EXPECT_TRUE(closed(old));
  EXPECT_EQ(refusal(wanted()).why, Refusal::kBusy) << "its generation began just now";
  clock_.pass(kSecond);
  const control::JobRef next = create().job;
  ASSERT_EQ(next.job, old.job);
  EXPECT_EQ(state(control::Heartbeat{old}).state, State::kGone);
  EXPECT_TRUE(closed(old));
  EXPECT_EQ(refusal(control::Fence{old, false}).why, Refusal::kNoJob);
  EXPECT_EQ(state(control::Heartbeat{next}).state, State::kAlive);
}

TEST_F(ControllerTest, RunsWithAnotherSeedBeginElsewhere) {
  std::set<int> generations;
  for (uint64_t seed = 0; seed < 16; ++seed) {
    driver_.jobs.clear();
    start({.seed = seed});
    generations.insert(create().job.generation);
  }
  EXPECT_GT(generations.size(), 8u);
}

TEST_F(ControllerTest, DrainingTakesNoNewJobs) {
  const JobGrant grant = create();
  (void)controller_->handle(control::Drain{true});
  EXPECT_EQ(refusal(wanted()).why, Refusal::kDraining);
  EXPECT_EQ(state(control::Heartbeat{grant.job}).state, State::kAlive);
  (void)controller_->handle(control::Drain{false});
  create();
}

TEST_F(ControllerTest, AFailingSwitchIsReportedAndTriedAgain) {
  const JobGrant grant = create();
  driver_.broken = true;
  EXPECT_THAT(refusal(wanted()).text, HasSubstr("the switch is on fire"));
  clock_.pass(kSecond);
  EXPECT_EQ(refusal(control::Fence{grant.job, false}).why, Refusal::kInternal);
  EXPECT_EQ(state(control::Heartbeat{grant.job}).state, State::kAlive);
  EXPECT_TRUE(closed(grant.job));
  EXPECT_EQ(state(control::Heartbeat{grant.job}).state, State::kGone);
  EXPECT_EQ(controller_->usage().jobs, 1u) << "its memory is still taken";
  pass(2 * kSecond);
  EXPECT_EQ(controller_->usage().jobs, 1u);
  driver_.broken = false;
  pass(2 * kSecond);
  EXPECT_EQ(controller_->usage().jobs, 0u);
  EXPECT_TRUE(driver_.jobs.empty());
  EXPECT_EQ(controller_->counters().jobs_expired.get(), 0u);
}

TEST_F(ControllerTest, ReportsAsJson) {
  const JobGrant grant = create();
  for (const bool counters : {false, true}) {
    const Message answer = controller_->handle(control::Report{counters});
    const auto report = nlohmann::json::parse(std::get<control::Text>(answer).text);
    EXPECT_EQ(report["switch"]["address"], "127.0.0.1:28880");
    EXPECT_EQ(report["switch"]["slot_bytes_used"], Slots::bytes_for(16, 64));
    EXPECT_EQ(report["jobs"][0]["job"], grant.job.job);
    EXPECT_EQ(report["jobs"][0]["formats"][0], "i32");
    EXPECT_EQ(report["jobs"][0]["lease_left_ms"], 30000);
    EXPECT_EQ(report["jobs"][0].contains("counters"), counters);
    EXPECT_EQ(report.contains("data"), counters);
    EXPECT_EQ(report.value("/data/recirculated"_json_pointer, 0), counters ? 77 : 0);
    EXPECT_EQ(report["tenants"][0]["tenant"], "physics");
    EXPECT_EQ(report["control"]["jobs_created"], 1);
  }
}

TEST_F(ControllerTest, TheLargestReportFitsAMessage) {
  driver_.shape_.slot_bytes = 1ull << 40;
  driver_.shape_.address =
      SocketAddress::parse("[2001:db8:1111:2222:3333:4444:5555:6666]:28880").value();
  start({.max_jobs = ControllerOptions::kMaxJobs,
         .default_quota = {.max_jobs = UINT32_MAX, .max_slot_bytes = UINT64_MAX}});
  auto job = wanted(0, 1024);
  job.tenant = std::string(control::kMaxTenantBytes, 't');
  job.formats_wanted = job.formats_least = sap::kKnownFormats;
  for (int i = 0; i < 32; ++i) {
    job.children.push_back(SocketAddress::parse("[2001:db8:1111:2222:3333:4444:5555:7777]:" +
                                                std::to_string(20000 + i))
                               .value());
  }
  for (uint32_t i = 0; i < ControllerOptions::kMaxJobs; ++i) create(job);
  EXPECT_LT(report_json(*controller_, true).size(), control::kMaxAnswerBytes);
}

TEST_F(ControllerTest, MetricsAreWhatPrometheusReads) {
  const JobGrant grant = create();
  const std::string text = metrics_text(*controller_);
  EXPECT_THAT(text, HasSubstr("# TYPE slime_switch_jobs gauge\nslime_switch_jobs 1\n"));
  EXPECT_THAT(text, HasSubstr("slime_control_jobs_created_total 1\n"));
  EXPECT_THAT(text,
              HasSubstr("# HELP slime_data_recirculated_total packets that went around again\n"
                        "# TYPE slime_data_recirculated_total counter\n"
                        "slime_data_recirculated_total 77\n"));
  const std::string number = std::to_string(grant.job.job);
  EXPECT_THAT(text, HasSubstr("slime_job_rounds_total{job=\"" + number + "\",tenant=\"physics\"} " +
                              std::to_string(1000 + grant.job.job) + "\n"));
  EXPECT_EQ(text.back(), '\n');
}

}  // namespace
}  // namespace slime::net
