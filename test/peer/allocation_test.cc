// Writes, reads and starts of plans, without messages, ask the heap for nothing once as many
// requests were open before. Counted in the thread that calls: it moves its requests by itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "test/peer/test_engine.h"
#include "test/support/heap_hooks.h"

namespace slime {
namespace {

using test::heap_allocations;

constexpr size_t kPiece = 4096, kPieces = 64, kBatch = 40, kBatches = 5;

class Allocation : public testing::Test {
 protected:
  Allocation() {
    for (size_t i = 0; i < kPieces; ++i) {
      pieces.push_back({local, remote, 2 * i * kPiece, 2 * i * kPiece, kPiece});
    }
    EXPECT_EQ(here.run(peer, SLIME_WRITE, pieces[0]).status, SLIME_OK);
  }

  slime_request submit(int op, size_t count, const slime_extra& extra) {
    slime_request request = 0;
    EXPECT_EQ(slime_submit(here.engine, peer, op, pieces.data(), count, &extra, &request),
              SLIME_OK);
    return request;
  }
  // The fewest of kBatches batches of calls: in the others a list may have grown that the engine
  // keeps.
  uint64_t fewest(const std::function<void()>& call) {
    uint64_t least = UINT64_MAX;
    for (size_t batch = 0; batch < kBatches; ++batch) {
      const uint64_t before = heap_allocations();
      for (size_t i = 0; i < kBatch; ++i) call();
      least = std::min(least, heap_allocations() - before);
    }
    return least;
  }

  std::vector<char> mine = std::vector<char>(2 * kPiece * kPieces),
                    other = std::vector<char>(2 * kPiece * kPieces);
  TestEngine here, there;
  const slime_peer peer = here.know(there);
  const slime_region local = here.add(mine);
  const slime_remote remote = here.remote(peer, there.blob_of(there.add(other)));
  std::vector<slime_assignment> pieces;
};

TEST_F(Allocation, NoneByWritesAndReads) {
  const slime_extra extra = SLIME_EXTRA_INIT;
  for (const int op : {SLIME_WRITE, SLIME_READ}) {
    for (const size_t count : {size_t{1}, kPieces}) {
      EXPECT_EQ(fewest([&] { (void)here.end(submit(op, count, extra)); }), 0) << op << " " << count;
    }
    size_t count = 0;
    const auto sizes_by_turns = [&] { (void)here.end(submit(op, 1 + count++ % kPieces, extra)); };
    EXPECT_EQ(fewest(sizes_by_turns), 0) << op;
  }
}

TEST_F(Allocation, NoneByManyThatAreOpen) {
  slime_extra extra = SLIME_EXTRA_INIT;
  std::vector<slime_request> open(16);
  const auto wait_for_each = [&] {
    for (auto& request : open) request = submit(SLIME_WRITE, 1, extra);
    for (const auto request : open) (void)here.end(request);
  };
  EXPECT_EQ(fewest(wait_for_each), 0);
  extra.flags = SLIME_COMPLETES;
  const auto fetch_completions = [&] {
    for (auto& request : open) request = submit(SLIME_WRITE, 1, extra);
    std::array<slime_completion, 16> room;
    for (size_t left = open.size(); left > 0;) {
      size_t count = room.size();
      ASSERT_EQ(slime_completed(here.engine, room.data(), &count), SLIME_OK);
      left -= count;
    }
  };
  EXPECT_EQ(fewest(fetch_completions), 0);
}

TEST_F(Allocation, NoneByStartsOfAPlan) {
  slime_plan plan = 0;
  ASSERT_EQ(slime_prepare(here.engine, peer, pieces.data(), pieces.size(), &plan), SLIME_OK);
  const slime_extra extra = SLIME_EXTRA_INIT;
  const std::vector<uint32_t> some = {3, 5, 60};
  const auto start = [&](const uint32_t* indices, size_t count) {
    slime_request request = 0;
    ASSERT_EQ(slime_start(here.engine, plan, SLIME_WRITE, indices, count, &extra, &request),
              SLIME_OK);
    (void)here.end(request);
  };
  EXPECT_EQ(fewest([&] { start(some.data(), some.size()); }), 0);
  EXPECT_EQ(fewest([&] { start(nullptr, 0); }), 0);
}

}  // namespace
}  // namespace slime
