// Requests of many pieces: long lists, plans, pages.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "peer/engine/sources.h"
#include "test/peer/test_engine.h"

namespace slime {
namespace {

constexpr uint64_t kPiece = 16, kPieces = 20'000;  // more than are checked at the call

// Pieces of memory here and there that do not lie side by side, in an order of chance.
class PlanTest : public testing::Test {
 protected:
  PlanTest()
      : mine_(2 * kPiece * kPieces, 'm'),
        theirs_(2 * kPiece * kPieces, 't'),
        local_(here_.add(mine_)),
        owned_(there_.add(theirs_)),
        peer_(here_.know(there_)),
        remote_(here_.remote(peer_, there_.blob_of(owned_))) {
    order_.resize(kPieces);
    std::iota(order_.begin(), order_.end(), 0);
    std::shuffle(order_.begin(), order_.end(), std::minstd_rand(7));
    for (uint32_t i = 0; i < kPieces; ++i) {
      list_.push_back({local_, remote_, i * 2 * kPiece, order_[i] * 2 * kPiece, kPiece});
      std::memset(mine_.data() + list_[i].local_offset, static_cast<char>(i % 251), kPiece);
    }
  }

  slime_plan prepare(std::span<const slime_assignment> list) {
    slime_plan plan = 0;
    EXPECT_EQ(slime_prepare(here_.engine, peer_, list.data(), list.size(), &plan), SLIME_OK)
        << slime_last_error();
    return plan;
  }
  slime_request start(slime_plan plan, int op, std::span<const uint32_t> indices = {}) {
    slime_request request = 0;
    EXPECT_EQ(
        slime_start(here_.engine, plan, op, indices.data(), indices.size(), nullptr, &request),
        SLIME_OK)
        << slime_last_error();
    return request;
  }
  void expect_refused(slime_plan plan, const char* why, int op = SLIME_WRITE) {
    slime_request request = 0;
    EXPECT_EQ(slime_start(here_.engine, plan, op, nullptr, 0, nullptr, &request),
              SLIME_ERR_INVALID);
    EXPECT_NE(std::strstr(slime_last_error(), why), nullptr) << slime_last_error();
  }
  void expect_ok(slime_request request, uint64_t bytes) {
    const slime_result result = here_.end(request);
    EXPECT_EQ(result.status, SLIME_OK) << result.text;
    EXPECT_EQ(result.bytes, bytes);
  }
  // Piece i is there if `moved` says so, and nothing between the pieces has changed.
  template <typename Moved>
  void expect_written(Moved moved) {
    std::vector<char> expected(theirs_.size(), 't');
    for (uint32_t i = 0; i < kPieces; ++i) {
      if (!moved(i)) continue;
      std::memcpy(expected.data() + list_[i].remote_offset, mine_.data() + list_[i].local_offset,
                  kPiece);
    }
    EXPECT_TRUE(expected == theirs_);
  }
  static bool all(uint32_t) { return true; }

  std::vector<char> mine_, theirs_;
  TestEngine here_, there_;
  slime_region local_, owned_;
  slime_peer peer_;
  slime_remote remote_;
  std::vector<uint32_t> order_;
  std::vector<slime_assignment> list_;
};

TEST_F(PlanTest, ALongListIsMovedAndItsArrayMayChange) {
  auto list = list_;
  slime_request request = 0;
  ASSERT_EQ(
      slime_submit(here_.engine, peer_, SLIME_WRITE, list.data(), list.size(), nullptr, &request),
      SLIME_OK);
  std::memset(list.data(), 0xff, list.size() * sizeof list[0]);
  expect_ok(request, kPieces * kPiece);
  expect_written(all);
}

TEST_F(PlanTest, ABorrowedListIsUsedAsItIs) {
  slime_extra extra = SLIME_EXTRA_INIT;
  extra.flags = SLIME_BORROW;
  slime_request request = 0;
  ASSERT_EQ(
      slime_submit(here_.engine, peer_, SLIME_WRITE, list_.data(), list_.size(), &extra, &request),
      SLIME_OK);
  expect_ok(request, kPieces * kPiece);
  expect_written(all);
}

TEST_F(PlanTest, WhatIsWrongLateInALongListEndsTheRequest) {
  slime_request request = 0;
  list_[kPieces - 1].remote_offset = theirs_.size();
  ASSERT_EQ(
      slime_submit(here_.engine, peer_, SLIME_WRITE, list_.data(), list_.size(), nullptr, &request),
      SLIME_OK);
  const slime_result result = here_.end(request);
  EXPECT_EQ(result.status, SLIME_ERR_INVALID);
  EXPECT_NE(std::strstr(result.text, "assignment 19999"), nullptr) << result.text;
  list_[100].local = remote_;
  EXPECT_EQ(
      slime_submit(here_.engine, peer_, SLIME_WRITE, list_.data(), list_.size(), nullptr, &request),
      SLIME_ERR_INVALID);
  EXPECT_NE(std::strstr(slime_last_error(), "assignment 100"), nullptr) << slime_last_error();
}

// Regions that nobody has named before are looked up, and their keys asked for, on the way.
TEST_F(PlanTest, ALongListMayNameManyRegions) {
  constexpr size_t kRegions = 50;
  std::vector<slime_remote> remotes;
  for (size_t i = 0; i < kRegions; ++i) {
    const std::span part(theirs_.data() + i * theirs_.size() / kRegions, theirs_.size() / kRegions);
    remotes.push_back(here_.remote(peer_, there_.blob_of(there_.add(part))));
  }
  for (slime_assignment& one : list_) {
    const uint64_t bytes = theirs_.size() / kRegions;
    one.remote = remotes[one.remote_offset / bytes];
    one.remote_offset %= bytes;
  }
  slime_request request = 0;
  ASSERT_EQ(
      slime_submit(here_.engine, peer_, SLIME_READ, list_.data(), list_.size(), nullptr, &request),
      SLIME_OK);
  expect_ok(request, kPieces * kPiece);
  for (const slime_assignment& one : list_) {
    EXPECT_EQ(mine_[one.local_offset], 't');
    EXPECT_EQ(mine_[one.local_offset + kPiece], 'm');
  }
}

TEST_F(PlanTest, APlanIsStartedAgainAndAgain) {
  const slime_plan plan = prepare(list_);
  std::fill(theirs_.begin(), theirs_.end(), 't');
  const slime_request one = start(plan, SLIME_WRITE), other = start(plan, SLIME_WRITE);
  expect_ok(one, kPieces * kPiece);
  expect_ok(other, kPieces * kPiece);
  expect_written(all);
  const std::vector<char> before = mine_;
  std::fill(mine_.begin(), mine_.end(), '-');
  expect_ok(start(plan, SLIME_READ), kPieces * kPiece);
  for (const slime_assignment& one : list_) {
    EXPECT_EQ(mine_[one.local_offset], before[one.local_offset]);
    EXPECT_EQ(mine_[one.local_offset + kPiece], '-');
  }
  EXPECT_EQ(slime_release(here_.engine, plan), SLIME_OK);
  expect_refused(plan, "no such plan");
}

TEST_F(PlanTest, SomeOfAPlanByIndex) {
  const slime_plan plan = prepare(list_);
  std::vector<uint32_t> odd;
  for (uint32_t i = 1; i < kPieces; i += 2) odd.push_back(i);
  expect_ok(start(plan, SLIME_WRITE, odd), odd.size() * kPiece);
  expect_written([](uint32_t i) { return i % 2 == 1; });
  expect_ok(start(plan, SLIME_WRITE, std::vector<uint32_t>{0, 2}), 2 * kPiece);
  expect_written([](uint32_t i) { return i % 2 == 1 || i == 0 || i == 2; });
  odd.push_back(kPieces);
  slime_request request = 0;
  EXPECT_EQ(slime_start(here_.engine, plan, SLIME_WRITE, odd.data(), odd.size(), nullptr, &request),
            SLIME_ERR_INVALID);
  EXPECT_NE(std::strstr(slime_last_error(), "index 20000"), nullptr) << slime_last_error();
}

TEST_F(PlanTest, APlanIsRefusedWhenItsRegionsOrItsPeerAreGone) {
  const slime_plan by_local = prepare(list_);
  EXPECT_EQ(slime_deregister(here_.engine, local_, -1), SLIME_OK);  // a plan holds nothing
  expect_refused(by_local, "deregistered");
  const slime_region again = here_.add(mine_);
  for (auto& one : list_) one.local = again;
  const slime_plan by_remote = prepare(list_);
  EXPECT_EQ(slime_release(here_.engine, remote_), SLIME_OK);
  expect_refused(by_remote, "released");
  const slime_remote imported = here_.remote(peer_, there_.blob_of(owned_));
  for (auto& one : list_) one.remote = imported;
  const slime_plan by_peer = prepare(list_);
  here_.remove(peer_);
  expect_refused(by_peer, "no such peer");
}

TEST_F(PlanTest, APlanNeedsTheRightOfItsOperation) {
  slime_memory memory = SLIME_MEMORY_INIT;
  memory.rights = SLIME_REMOTE_READ;
  slime_region read_only = 0;
  ASSERT_EQ(slime_register(there_.engine, theirs_.data(), kPiece, &memory, &read_only), SLIME_OK);
  const slime_remote remote = here_.remote(peer_, there_.blob_of(read_only));
  const slime_assignment one = {local_, remote, 0, 0, kPiece};
  const slime_plan plan = prepare({&one, 1});
  expect_refused(plan, "let peers write");
  expect_ok(start(plan, SLIME_READ), kPiece);
}

class PagesTest : public PlanTest {
 protected:
  int start_pages(const slime_pages& pages, slime_request* request) {
    return slime_start_pages(here_.engine, peer_, SLIME_WRITE, &pages, nullptr, request);
  }
  // The list, as pages.
  slime_pages pages() {
    slime_pages pages = SLIME_PAGES_INIT;
    pages.local = local_;
    pages.remote = remote_;
    pages.page_bytes = kPiece;
    pages.local_stride = pages.remote_stride = 2 * kPiece;
    pages.local_pages = here_pages_.data();
    pages.remote_pages = order_.data();
    pages.count = kPieces;
    return pages;
  }

  std::vector<uint32_t> here_pages_ = [] {
    std::vector<uint32_t> all(kPieces);
    std::iota(all.begin(), all.end(), 0);
    return all;
  }();
};

TEST_F(PagesTest, AreMoved) {
  slime_request request = 0;
  ASSERT_EQ(start_pages(pages(), &request), SLIME_OK) << slime_last_error();
  expect_ok(request, kPieces * kPiece);
  expect_written(all);
}

TEST_F(PagesTest, OffsetsAndStridesOfBothSides) {
  slime_request request = 0;
  const std::vector<uint32_t> two = {5, 1};
  slime_pages pages = this->pages();
  pages.local_offset = 4 * kPiece;
  pages.local_stride = 0;  // side by side
  pages.remote_offset = kPiece;
  pages.remote_stride = 3 * kPiece;
  pages.local_pages = pages.remote_pages = two.data();
  pages.count = 2;
  ASSERT_EQ(start_pages(pages, &request), SLIME_OK) << slime_last_error();
  expect_ok(request, 2 * kPiece);
  EXPECT_TRUE(std::equal(&mine_[9 * kPiece], &mine_[10 * kPiece], &theirs_[16 * kPiece]));
  EXPECT_TRUE(std::equal(&mine_[5 * kPiece], &mine_[6 * kPiece], &theirs_[4 * kPiece]));
  EXPECT_EQ(static_cast<size_t>(std::ranges::count(theirs_, 't')), theirs_.size() - 2 * kPiece);
}

TEST_F(PagesTest, OutsideTheirRegionAreRefused) {
  slime_request request = 0;
  const auto refused = [&](slime_pages pages, const char* why) {
    EXPECT_EQ(start_pages(pages, &request), SLIME_ERR_INVALID);
    EXPECT_NE(std::strstr(slime_last_error(), why), nullptr) << slime_last_error();
  };
  here_pages_[kPieces - 1] = kPieces;
  refused(pages(), "page 19999 of the list is 20000");
  here_pages_[kPieces - 1] = 0;
  slime_pages wrong = pages();
  wrong.remote_stride = UINT64_MAX / 2;
  refused(wrong, "remote region");
  wrong = pages();
  wrong.local_offset = UINT64_MAX - 8;
  refused(wrong, "local region");
  wrong = pages();
  wrong.page_bytes = theirs_.size() + 1;
  refused(wrong, "local region");
  wrong = pages();
  wrong.count = 0;
  refused(wrong, "no assignments");
  wrong = pages();
  wrong.remote_pages = nullptr;
  refused(wrong, "NULL");
  wrong = pages();
  wrong.local = remote_;
  refused(wrong, "no such local region");
}

// What the link does with such a request, with another link in between.
TEST(PieceSource, BeginsAnewOnAnotherLink) {
  auto plan = std::make_shared<Plan>();
  std::vector<std::byte> memory(1000);
  for (size_t i = 0; i < 100; ++i) {
    plan->pieces.push_back({.local = memory.data() + i, .remote_offset = 2 * i, .bytes = 1});
  }
  PeerRequest request;
  PlanSource source(plan);
  ASSERT_TRUE(source.refill(request, 10));
  request.source = std::make_unique<PlanSource>(std::move(source));
  const auto take = [&](size_t count) {
    std::vector<uint64_t> offsets;
    while (offsets.size() < count && !request.all_begun()) {
      if (request.wants_pieces()) request.refill(7);
      offsets.push_back(request.take(1).remote_offset);
    }
    return offsets;
  };
  std::vector<uint64_t> expected(100);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = 2 * i;
  EXPECT_EQ(take(50).size(), 50u);
  request.restart();
  EXPECT_EQ(take(3).size(), 3u);
  request.restart();
  EXPECT_EQ(take(1000), expected);
  EXPECT_TRUE(request.all_begun());
}

}  // namespace
}  // namespace slime
