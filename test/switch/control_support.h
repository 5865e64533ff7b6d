// A switch without packets, and what the control plane's tests ask for.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "switch/controller/controller.h"
#include "test/support/manual_clock.h"

namespace slime::net::test {

inline constexpr uint64_t kMs = 1'000'000, kSecond = 1000 * kMs;

using slime::test::ManualClock;

class FakeDriver final : public SwitchDriver {
 public:
  SwitchShape shape() const override { return shape_; }
  Result<void> add_job(const JobSpec& spec) override {
    if (auto failed = failure()) return fail(*failed);
    EXPECT_EQ(jobs.count(spec.job), 0u) << "the number is in use";
    jobs[spec.job] = spec;
    return {};
  }
  Result<void> remove_job(uint16_t job) override {
    if (auto failed = failure()) return fail(*failed);
    EXPECT_EQ(jobs.erase(job), 1u);
    return {};
  }
  Result<void> fence(uint16_t job, uint8_t generation, uint32_t token) override {
    if (auto failed = failure()) return fail(*failed);
    EXPECT_EQ(jobs.count(job), 1u);
    jobs[job].generation = generation;
    jobs[job].token = token;
    return {};
  }
  Result<JobTotals> totals(uint16_t job) const override {
    if (jobs.count(job) == 0) return fail(make_error(Status::kInvalid, 0, "no job %u", job));
    JobTotals totals;
    totals.rounds = 1000u + job;
    return totals;
  }

  std::vector<DeviceCounter> counters() const override {
    return {{.name = "recirculated", .help = "packets that went around again", .value = 77}};
  }

  std::optional<Error> failure() const {
    if (!broken) return {};
    return make_error(Status::kSystem, 5, "the switch is on fire");
  }

  SwitchShape shape_{.address = SocketAddress::parse("127.0.0.1:28880").value(),
                     .shards = 4,
                     .max_lanes = 256,
                     .slot_bytes = 1 << 20,
                     .formats = sap::kKnownFormats};
  std::map<uint16_t, JobSpec> jobs;
  bool broken = false;
};

inline SocketAddress address_of_child(int child) {
  return SocketAddress::parse("127.0.0.1:" + std::to_string(9000 + child)).value();
}

inline control::CreateJob wanted(int children = 2, uint32_t slots = 16) {
  control::CreateJob job{.tenant = "physics",
                         .slots_wanted = slots,
                         .slots_least = 1,
                         .lanes_wanted = 64,
                         .lanes_least = 64,
                         .formats_wanted = 1,
                         .formats_least = 1,
                         .children = {}};
  for (int i = 0; i < children; ++i) job.children.push_back(address_of_child(i));
  return job;
}

inline SecretKey key_of(const std::string& text) {
  return SecretKey::from_bytes(std::as_bytes(std::span(text))).value();
}

}  // namespace slime::net::test
