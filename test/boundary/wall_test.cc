// The parts behind the tables that need no shared object: translation of errors, texts, files.
#include <gtest/gtest.h>
#include <unistd.h>

#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/log.h"
#include "plugin/api_call.h"
#include "plugin/logger.h"
#include "plugin/nccl_proto.h"
#include "plugin/stats.h"
#include "test/boundary/support/support.h"

namespace slime::boundary {
namespace {

using plugin::api_call;

class Wall : public testing::Test {
 protected:
  Wall() {
    Log::clear();
    plugin::set_logger(Log::logger());
  }
  ~Wall() override { plugin::set_logger(nullptr); }
};

nccl::ResultCode outcome_of(Status status) {
  return api_call("isend",
                  [&]() -> Result<void> { return fail(make_error(status, 0, "the sentence")); });
}

TEST_F(Wall, TranslatesEveryStatus) {
  EXPECT_EQ(api_call("x", [] { return Result<void>{}; }), nccl::kSuccess);
  EXPECT_TRUE(Log::lines().empty());
  EXPECT_EQ(outcome_of(Status::kInvalid), nccl::kInternalError);
  EXPECT_EQ(outcome_of(Status::kConfig), nccl::kInvalidUsage);
  EXPECT_EQ(outcome_of(Status::kSystem), nccl::kSystemError);
  EXPECT_EQ(outcome_of(Status::kNoMemory), nccl::kSystemError);
  EXPECT_EQ(outcome_of(Status::kRemote), nccl::kRemoteError);
  EXPECT_EQ(outcome_of(Status::kTimeout), nccl::kRemoteError);
  EXPECT_EQ(outcome_of(Status::kUnsupported), nccl::kInternalError);
  EXPECT_EQ(outcome_of(Status::kInternal), nccl::kInternalError);
  EXPECT_EQ(Log::count(nccl::kLogWarn, "isend: the sentence"), 8u);
  EXPECT_EQ(Log::lines().at(0).flags, nccl::kSubsystemInit | nccl::kSubsystemNet);
}

TEST_F(Wall, LogsNothingForAnErrorThatWasLogged) {
  const auto code = api_call("test", []() -> Result<void> {
    return fail(Error{Status::kRemote, 0, ""});
  });
  EXPECT_EQ(code, nccl::kRemoteError);
  EXPECT_TRUE(Log::lines().empty());
}

TEST_F(Wall, StopsExceptions) {
  const auto no_memory = api_call("regMr", []() -> Result<void> { throw std::bad_alloc(); });
  EXPECT_EQ(no_memory, nccl::kSystemError);
  const auto known = api_call("regMr", []() -> Result<void> { throw std::length_error("long"); });
  EXPECT_EQ(known, nccl::kInternalError);
  const auto unknown = api_call("regMr", []() -> Result<void> { throw 1; });
  EXPECT_EQ(unknown, nccl::kInternalError);
  EXPECT_EQ(Log::count(nccl::kLogWarn, "regMr: "), 3u);
  EXPECT_EQ(Log::count(nccl::kLogWarn, "out of memory"), 1u);
  EXPECT_EQ(Log::count(nccl::kLogWarn, "long"), 1u);
}

TEST(Ll128, IsRecognisedInNcclProto) {
  for (const char* yes : {"LL128", "ll,ll128,Simple", "^LL", "^Simple", "allreduce:ll128"}) {
    EXPECT_TRUE(plugin::allows_protocol(yes, "ll128")) << yes;
  }
  for (const char* no : {"^LL128", "^ll128,ll", "Simple", "LL", "LL,Simple", "allreduce:simple"}) {
    EXPECT_FALSE(plugin::allows_protocol(no, "ll128")) << no;
  }
}

TEST(StatsFile, ExpandsItsName) {
  const std::string pid = std::to_string(getpid());
  EXPECT_EQ(plugin::expand_stats_path("/tmp/a-%p.json"), "/tmp/a-" + pid + ".json");
  EXPECT_EQ(plugin::expand_stats_path("%%p 100% %x"), "%p 100% %x");
  EXPECT_EQ(plugin::expand_stats_path("%h").find('%'), std::string::npos);
}

TEST(StatsFile, HoldsEveryRailAndCounter) {
  RailReport rail{"eth0", "eth0.1", "tcp", "10.0.0.1", 25000, {}};
  rail.totals.bytes_sent = 1ull << 40;
  rail.totals.doorbells = 3;
  const auto document = nlohmann::json::parse(plugin::render_stats({.rails = {rail, rail}}));
  EXPECT_EQ(document.at("pid"), getpid());
  EXPECT_TRUE(document.at("version").is_string());
  EXPECT_TRUE(document.at("commit").is_string());
  ASSERT_EQ(document.at("rails").size(), 2u);
  const auto& row = document.at("rails")[0];
  EXPECT_EQ(row.at("device"), "eth0");
  EXPECT_EQ(row.at("rail"), "eth0.1");
  EXPECT_EQ(row.at("address"), "10.0.0.1");
  EXPECT_EQ(row.at("speed_mbps"), 25000);
  EXPECT_EQ(row.at("bytes_sent"), 1ull << 40);
#define SLIME_FIELD(name, help) EXPECT_TRUE(row.contains(#name));
  SLIME_RAIL_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
}

TEST(StatsFile, HoldsEveryCollNetWorkerAndCounter) {
  WorkerReport worker;
  worker.name = "CollNet on eth\xff, rank 1 of 4";  // an interface's name need not be UTF-8
  worker.worker.timeouts = 7;
  worker.round_trip_ns = 12'345;
  const auto document = nlohmann::json::parse(
      plugin::render_stats({.workers = {worker, worker}, .forgotten_workers = 3}));
  EXPECT_EQ(document.at("rails").size(), 0u);
  ASSERT_EQ(document.at("collnet").size(), 2u);
  EXPECT_EQ(document.at("collnet_forgotten"), 3);
  const auto& row = document.at("collnet")[0];
  EXPECT_NE(row.at("name").get<std::string>().find("rank 1 of 4"), std::string::npos);
  EXPECT_EQ(row.at("timeouts"), 7);
  EXPECT_EQ(row.at("round_trip_ns"), 12'345);
  EXPECT_EQ(row.at("without_switch"), false);
#define SLIME_FIELD(name, help) EXPECT_TRUE(row.contains(#name));
  SLIME_WORKER_COUNTERS(SLIME_FIELD)
  SLIME_UDP_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
}

}  // namespace
}  // namespace slime::boundary
