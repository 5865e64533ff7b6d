// A tcp channel between two rails on the loopback.
#include <poll.h>

#include <cerrno>

#include "test/unit/tcp/support.h"

namespace slime::tcp {
namespace {

constexpr size_t kLarge = 3 << 20;

TEST(TcpChannel, WorksOfAllSizesArriveInOrderAndWhole) {
  TestPair pair = connected_pair();
  TestBuffer from(*pair.left_rail, kLarge), to(*pair.right_rail, kLarge);
  from.fill_pattern(1);
  const std::vector<uint32_t> sizes = {0, 1, 7, 8, 31, 4096, 65536, 100'000, 1 << 20, 0, 3, kLarge};
  uint64_t expected_bytes = 0;
  for (uint32_t i = 0; i < sizes.size(); ++i) {
    std::fill(to.bytes().begin(), to.bytes().end(), std::byte{0});
    ASSERT_EQ(post_one(*pair.active, work_of(from, 0, to, 0, sizes[i], i + 100, i)), 1u);
    expected_bytes += sizes[i];
    bool sent = false, arrived = false;
    Status left = Status::kOk, right = Status::kOk;
    ASSERT_TRUE(eventually([&] {
      for (const Done& done : poll_once(*pair.active, &left)) {
        EXPECT_EQ(done.kind, Done::Kind::kSent);
        EXPECT_EQ(done.cookie, i);
        sent = true;
      }
      for (const Done& done : poll_once(*pair.passive, &right)) {
        EXPECT_EQ(done.kind, Done::Kind::kArrived);
        EXPECT_EQ(done.immediate, i + 100);
        EXPECT_EQ(done.bytes, sizes[i]);
        arrived = true;
      }
      return (sent && arrived) || left != Status::kOk || right != Status::kOk;
    })) << sizes[i];
    ASSERT_EQ(left, Status::kOk) << pair.active->failure().what;
    ASSERT_EQ(right, Status::kOk) << pair.passive->failure().what;
    ASSERT_EQ(std::memcmp(from.data(), to.data(), sizes[i]), 0) << sizes[i];
    if (sizes[i] < kLarge) {
      ASSERT_EQ(to.bytes()[sizes[i]], std::byte{0}) << "wrote too much";
    }
  }
  EXPECT_EQ(pair.active->counters.works.get(), sizes.size());
  EXPECT_EQ(pair.active->counters.bytes_sent.get(), expected_bytes);
  EXPECT_EQ(pair.passive->counters.arrivals.get(), sizes.size());
  EXPECT_EQ(pair.passive->counters.bytes_received.get(), expected_bytes);
}

TEST(TcpChannel, ASpanOfWorksIsOneDoorbell) {
  TestPair pair = connected_pair();
  TestBuffer from(*pair.left_rail, 4096), to(*pair.right_rail, 4096);
  std::vector<Work> works(64, work_of(from, 0, to, 0, 64));
  size_t taken = 0;
  ASSERT_EQ(pair.active->post(works, &taken), Status::kOk);
  EXPECT_EQ(taken, 64u);
  EXPECT_EQ(pair.active->counters.doorbells.get(), 1u);
  EXPECT_EQ(pair.active->counters.futile_posts.get(), 0u);
}

// After a small send, nothing of the peer's has come, mostly: a look at the socket would be a
// system call in vain, in the middle of an exchange. Where the caller goes on posting, arrivals
// come too.
TEST(TcpChannel, WhatIsSentIsReportedWithoutALookAtTheSocket) {
  TestPair pair = connected_pair();
  TestBuffer from(*pair.left_rail, 64), to(*pair.right_rail, 64);
  TestBuffer back(*pair.right_rail, 64), home(*pair.left_rail, 64);
  ASSERT_EQ(post_one(*pair.passive, work_of(back, 0, home, 0, 64)), 1u);
  Status status = Status::kOk;
  uint32_t sent = 0, arrived = 0;
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(post_one(*pair.active, work_of(from, 0, to, 0, 64)), 1u);
    const auto reported = poll_once(*pair.active, &status);
    EXPECT_TRUE(sent > 0 || reported.size() == 1) << "the first one looked";
    for (const Done& done : reported) ++(done.kind == Done::Kind::kSent ? sent : arrived);
    poll_once(*pair.passive, &status);
    return arrived > 0;
  }));
  EXPECT_GT(sent, 1u);
}

// Both ends stream at each other: nobody may wait for the other to read first.
void stream_both_ways(bool confirm_delivery, size_t room) {
  Settings settings;
  settings.socket_buffer = 64 << 10;
  TestPair pair = connected_pair(confirm_delivery, settings);
  constexpr uint32_t kWorks = 400, kBytes = 40'000;
  struct End {
    Channel& channel;
    TestBuffer from, to;
    uint32_t posted = 0, sent = 0, arrived = 0;
  };
  End ends[2] = {{*pair.active, {*pair.left_rail, kBytes}, {*pair.left_rail, kBytes}},
                 {*pair.passive, {*pair.right_rail, kBytes}, {*pair.right_rail, kBytes}}};
  ends[0].from.fill_pattern(3);
  ends[1].from.fill_pattern(4);
  Status status = Status::kOk;
  const auto step = [&](End& own, End& other) {
    std::vector<Work> works;
    while (own.posted + works.size() < kWorks && works.size() < 16) {
      const auto number = static_cast<uint32_t>(own.posted + works.size());
      works.push_back(work_of(own.from, 0, other.to, 0, number % 3 ? kBytes - number : number % 64,
                              number, number));
    }
    size_t taken = 0;
    status = own.channel.post(works, &taken);
    ASSERT_EQ(status, Status::kOk) << own.channel.failure().what;
    own.posted += static_cast<uint32_t>(taken);
    for (const Done& done : poll_once(own.channel, &status, room)) {
      if (done.kind == Done::Kind::kSent) {
        ASSERT_EQ(done.cookie, own.sent++);
        if (confirm_delivery) {
          ASSERT_LE(own.sent, other.arrived);
        }
      } else {
        ASSERT_EQ(done.immediate, own.arrived++);
      }
    }
    ASSERT_EQ(status, Status::kOk) << own.channel.failure().what;
  };
  ASSERT_TRUE(eventually([&] {
    step(ends[0], ends[1]);
    step(ends[1], ends[0]);
    return testing::Test::HasFatalFailure() ||
           (ends[0].sent == kWorks && ends[1].sent == kWorks && ends[0].arrived == kWorks &&
            ends[1].arrived == kWorks);
  })) << ends[0].sent
      << " " << ends[0].arrived << " " << ends[1].sent << " " << ends[1].arrived;
  EXPECT_EQ(std::memcmp(ends[0].from.data(), ends[1].to.data(), kBytes - kWorks), 0);
  EXPECT_EQ(std::memcmp(ends[1].from.data(), ends[0].to.data(), kBytes - kWorks), 0);
}

TEST(TcpChannel, BothWaysAtOnce) { stream_both_ways(false, 64); }
TEST(TcpChannel, BothWaysAtOnceConfirmed) { stream_both_ways(true, 64); }
TEST(TcpChannel, BothWaysAtOnceWithRoomForOneCompletion) { stream_both_ways(false, 1); }
TEST(TcpChannel, BothWaysAtOnceConfirmedWithRoomForOneCompletion) { stream_both_ways(true, 1); }

// Whoever asks for one completion at a time gets both kinds, however many there are of one.
TEST(TcpChannel, NeitherKindOfCompletionStarvesTheOther) {
  TestPair pair = connected_pair();
  const std::vector<Work> empty(64);
  size_t taken = 0;
  ASSERT_EQ(pair.passive->post(empty, &taken), Status::kOk);
  ASSERT_EQ(pair.active->post(empty, &taken), Status::kOk);
  int sent = 0, arrived = 0;
  Status status = Status::kOk;
  ASSERT_TRUE(eventually([&] {
    for (const Done& done : poll_once(*pair.active, &status, 1)) {
      ++(done.kind == Done::Kind::kSent ? sent : arrived);
    }
    return arrived > 0;
  }));
  for (int i = 0; i < 40; ++i) {
    ASSERT_EQ(pair.active->post(std::span(empty).first(2), &taken), Status::kOk);
    for (const Done& done : poll_once(*pair.active, &status, 1)) {
      ++(done.kind == Done::Kind::kSent ? sent : arrived);
    }
  }
  EXPECT_GE(sent, 20);
  EXPECT_GE(arrived, 20);
}

}  // namespace
}  // namespace slime::tcp
