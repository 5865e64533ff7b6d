// Two ranks of a CollNet in one process, over a software switch in the same process.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "test/boundary/support/coll_switch.h"

namespace slime::boundary {
namespace {

SLIME_FOR_ALL_VERSIONS(CollSwitch);

TEST_P(CollSwitch, AddsUp) {
  fill();
  void* const first = start(ranks_[0], call_of(ranks_[0]));
  void* const second = start(ranks_[1], call_of(ranks_[1]));
  ASSERT_TRUE(wait_for(first, second));
  EXPECT_TRUE(has_sums(ranks_[0]));
  EXPECT_TRUE(has_sums(ranks_[1]));
  int done = 0;
  refused(coll_.test(first, &done, nullptr), "done");
  void* request = this;
  EXPECT_EQ(coll_.iflush(ranks_[0].comm, &request), nccl::kSuccess);
  EXPECT_EQ(request, nullptr) << "host memory needs no flush";
  refused(coll_.iflush(ranks_[0].comm, nullptr), "request is NULL");
  EXPECT_EQ(warnings(), 0u) << Log::text();
}

// NCCL offers the same operation again where it gets no request.
TEST_P(CollSwitch, TakesAsManyAsNcclMayHaveOutstanding) {
  constexpr size_t kMost = 64, kMore = 80;
  std::vector<void*> open[2];
  for (size_t i = 0; i <= kMost; ++i) {
    void* const request = start(ranks_[0], call_of(ranks_[0], i, 1));
    if (request == nullptr) break;
    open[0].push_back(request);
  }
  ASSERT_EQ(open[0].size(), kMost) << "and then no more, without an error";
  size_t issued[2] = {kMost, 0}, ended[2] = {};
  const bool all = wait_until([&] {
    for (size_t r = 0; r < 2; ++r) {
      void* const request =
          issued[r] < kMore ? start(ranks_[r], call_of(ranks_[r], issued[r], 1)) : nullptr;
      if (request != nullptr) {
        open[r].push_back(request);
        ++issued[r];
      }
      int done = 0;
      if (ended[r] == open[r].size()) continue;
      EXPECT_EQ(coll_.test(open[r][ended[r]], &done, nullptr), nccl::kSuccess) << Log::text();
      ended[r] += done != 0;
    }
    return HasFailure() || (ended[0] == kMore && ended[1] == kMore);
  });
  EXPECT_TRUE(all) << ended[0] << " and " << ended[1] << " ended";
}

TEST_P(CollSwitch, RefusesWhatItDidNotPromise) {
  Rank& rank = ranks_[0];
  void* request = this;
  const auto bad = [&](const AllreduceCall& call) {
    request = this;
    refused(coll_.iallreduce(rank.comm, call, &request), "iallreduce of");
    EXPECT_EQ(request, nullptr);
  };
  AllreduceCall call = call_of(rank);
  refused(coll_.iallreduce(rank.comm, call, nullptr), "request is NULL");
  call.type = nccl::kFloat64;
  bad(call);
  call = call_of(rank);
  call.op = nccl::kProd;
  bad(call);
  call = call_of(rank);
  call.send_mhandle = nullptr;
  bad(call);
  call = call_of(rank, 1);
  bad(call);  // one element beyond the registration
  call = call_of(rank);
  call.count = -1;
  refused(coll_.iallreduce(rank.comm, call, &request), "iallreduce of -1 elements of 4 bytes");
  void* mhandle = nullptr;
  refused(coll_.reg_mr(rank.comm, nullptr, 8, nccl::kPointerHost, &mhandle), "data is NULL");
  refused(coll_.reg_mr(rank.comm, rank.memory.data(), 0, nccl::kPointerHost, &mhandle),
          "cannot register 0 bytes");
  refused(coll_.reg_mr(rank.comm, rank.memory.data(), 8, nccl::kPointerCuda, &mhandle),
          "CollNet takes host memory only", nccl::kInternalError);
  refused(coll_.reg_dma_buf(rank.comm, rank.memory.data(), 8, 3, &mhandle), "DMA-BUF",
          nccl::kInternalError);
  EXPECT_EQ(coll_.dereg_mr(rank.comm, nullptr), nccl::kSuccess);
  EXPECT_EQ(mhandle, nullptr);
  refused(coll_.close_listen(rank.comm), "listenComm");
}

// The bytes of this many floats wrap to 0, which any registration covers.
class CollHugeCount : public CollSwitch {};
INSTANTIATE_TEST_SUITE_P(Net, CollHugeCount, testing::Values(9, 12));

TEST_P(CollHugeCount, IsRefused) {
  AllreduceCall call = call_of(ranks_[0]);
  call.type = nccl::kFloat32;
  for (const int64_t count : {int64_t{1} << 62, (int64_t{1} << 62) + 1, int64_t{1} << 61}) {
    void* request = this;
    call.count = count;
    refused(coll_.iallreduce(ranks_[0].comm, call, &request),
            "iallreduce of " + std::to_string(count) + " elements of 4 bytes");
    EXPECT_EQ(request, nullptr);
  }
}

// NCCL's order when a communicator is aborted: deregMr, then close; requests are never tested.
TEST_P(CollSwitch, ClosesWithOperationsOutstanding) {
  void* const request = start(ranks_[0], call_of(ranks_[0]));
  EXPECT_NE(request, nullptr) << "the other rank never comes";
}

class CollStats : public CollPair {};
// The version makes no difference.
INSTANTIATE_TEST_SUITE_P(Net, CollStats, testing::Values(8, 12));

TEST_P(CollStats, HoldTheWorkersOfEveryCommunicator) {
  const LocalSwitch local;
  const std::string path = testing::TempDir() + "slime-collnet-" + std::to_string(getpid());
  set("NCCL_SLIME_SWITCH", local.address().c_str());
  set("NCCL_SLIME_STATS", path.c_str());
  init();
  size_t rows = 0;  // tests before this one have left theirs
  for (size_t round = 0; round < 2; ++round) {
    connect();
    each([this](Rank& rank) {
      ASSERT_NE(rank.comm, nullptr) << Log::text();
      EXPECT_EQ(coll_.close_coll(rank.comm), nccl::kSuccess);
    });
    EXPECT_TRUE(std::filesystem::exists(path)) << Log::text();
    auto document = nlohmann::json::parse(std::ifstream(path), nullptr, false);
    auto& workers = document["collnet"];
    if (round > 0) {
      EXPECT_EQ(workers.size(), rows + 2) << "those that are closed, too";
    }
    rows = workers.size();
    EXPECT_GE(rows, 2u);
    for (size_t i = rows - 2; i < rows; ++i) {
      EXPECT_NE(workers[i]["name"].get<std::string>().find("of 2"), std::string::npos);
      EXPECT_EQ(workers[i]["operations"], 1) << "the trial";
      EXPECT_GE(workers[i]["sent"], workers[i]["results"]);
      EXPECT_GT(workers[i]["results"], 0);
    }
  }
  finalize_both();
  EXPECT_EQ(nlohmann::json::parse(std::ifstream(path))["collnet"].size(), rows);
  std::filesystem::remove(path);
}

// Switches over which no sum comes back right. NCCL then uses rings, which are better than what the
// ranks could do for each other.
class CollBadSwitch : public CollPair {
 protected:
  void expect_no_connection(const LocalSwitch& bad, const std::string& why) {
    set("NCCL_SLIME_SWITCH", bad.address().c_str());
    init();
    connect();
    for (const Rank& rank : ranks_) {
      EXPECT_NE(rank.connected, nccl::kSuccess);
      EXPECT_EQ(rank.comm, nullptr);
    }
    EXPECT_NE(Log::text().find(why), std::string::npos) << Log::text();
    finalize_both();
  }
};
class CollDeafSwitch : public CollBadSwitch {};
class CollFaultySwitch : public CollBadSwitch {};
// Each takes 5 s, and the version makes no difference.
INSTANTIATE_TEST_SUITE_P(Net, CollDeafSwitch, testing::Values(8));
INSTANTIATE_TEST_SUITE_P(Net, CollFaultySwitch, testing::Values(8));

TEST_P(CollDeafSwitch, FailsToConnectAtAllRanks) {
  expect_no_connection(LocalSwitch({.deaf = true}),
                       "no sum came back over UDP within 5 s from its data address, 127.0.0.1:9;");
}

TEST_P(CollFaultySwitch, FailsToConnectAtAllRanks) {
  expect_no_connection(LocalSwitch({.damaged = UINT32_MAX}),
                       "were not what the ranks' contributions come to");
}

// The ones of both ranks with one bit changed: 2 * 0x04000001.
TEST_P(CollFaultySwitch, SaysThatASumIsWrongThoughItsCheckHolds) {
  expect_no_connection(LocalSwitch({.damaged = UINT32_MAX, .forges = true}),
                       "came back, and their check holds, but 134217730 came where 2 ranks had "
                       "sent 1 each");
}

}  // namespace
}  // namespace slime::boundary
