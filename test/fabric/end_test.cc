// What is confirmed, what a failure says, and what is left behind.
#include "test/fabric/support.h"

namespace slime::fabric {
namespace {

size_t number_of(std::span<const Done> done, Done::Kind kind) {
  return static_cast<size_t>(std::ranges::count(done, kind, &Done::kind));
}

TEST(FabricEnd, ArrivalsThatAreDroppedAtTheCloseAreNotConfirmed) {
  TestNics world;
  TestPair pair(world, true);
  ASSERT_TRUE(pair.connect());
  TestBuffer from(*world.left, 64, 5), to(*world.right, 64);
  for (const Work& work : works_of(from, to, 8)) ASSERT_EQ(post_one(*pair.left, work), Status::kOk);
  world.settle();
  EXPECT_EQ(to.bytes(), from.bytes()) << "the NIC has all of them";
  Status status = Status::kOk;
  EXPECT_THAT(poll_all(*pair.left, &status), IsEmpty());
  std::vector<Done> reported = poll_once(*pair.right, &status, 3);
  pair.right.reset();
  std::vector<Done> done;
  EXPECT_EQ(failure_of(world, *pair.left, &done).status, Status::kRemote);
  EXPECT_EQ(number_of(done, Done::Kind::kSent), reported.size());
}

// They are read while the receiver still connects, and reported by its polls later.
TEST(FabricEnd, ArrivalsThatOvertookTheSetUpAreConfirmedWhenTheyAreReported) {
  TestNics world;
  TestPair pair(world, true);
  const ChannelAddress of_left = pair.left->address(), of_right = pair.right->address();
  ASSERT_TRUE(eventually([&] {
    (void)pair.left->connect(of_right);
    if (world.nics.counts(1).writes == 0) (void)pair.right->connect(of_left);
    return world.nics.counts(0).writes + world.nics.counts(1).writes == 2;
  }));
  world.settle();  // the first writes of both ends
  ASSERT_EQ(pair.right->connect(of_left), Status::kAgain) << "the left one has not looked";
  ASSERT_TRUE(eventually([&] { return pair.left->connect(of_right) == Status::kOk; }));
  TestBuffer from(*world.left, 64, 5), to(*world.right, 64);
  for (const Work& work : works_of(from, to, 4)) ASSERT_EQ(post_one(*pair.left, work), Status::kOk);
  world.settle();
  ASSERT_TRUE(eventually([&] { return pair.right->connect(of_left) == Status::kOk; }));
  Status status = Status::kOk;
  EXPECT_EQ(poll_once(*pair.right, &status, 1).size(), 1u);
  pair.right.reset();
  std::vector<Done> done;
  EXPECT_EQ(failure_of(world, *pair.left, &done).status, Status::kRemote);
  EXPECT_EQ(number_of(done, Done::Kind::kSent), 1u);
}

TEST(FabricEnd, WithoutConfirmationsANicsWordIsEnough) {
  TestNics world;
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  TestBuffer from(*world.left, 64, 5), to(*world.right, 64);
  for (const Work& work : works_of(from, to, 8)) ASSERT_EQ(post_one(*pair.left, work), Status::kOk);
  world.settle();
  Status status = Status::kOk;
  EXPECT_EQ(poll_all(*pair.left, &status).size(), 8u);
}

// A report does not say which of them has arrived.
TEST(FabricEnd, WorksWithOneImmediateAreConfirmedTogether) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    TestNics world({.seed = seed});
    TestPair pair(world, true);
    ASSERT_TRUE(pair.connect());
    TestBuffer from(*world.left, 64, 5), to(*world.right, 64);
    for (Work work : works_of(from, to, 4)) {
      work.immediate = 9;
      ASSERT_EQ(post_one(*pair.left, work), Status::kOk);
    }
    Status status = Status::kOk;
    size_t arrived = 0, sent = 0;
    const auto poll_both = [&] {
      arrived += poll_once(*pair.right, &status).size();
      sent += poll_once(*pair.left, &status).size();
    };
    while (arrived < 3) world.nics.step(), poll_both();
    for (int i = 0; i < 200; ++i) poll_both();
    EXPECT_EQ(sent, arrived == 4 ? sent : 0u);
    EXPECT_TRUE(eventually([&] {
      world.settle();
      poll_both();
      return sent == 4;
    }));
    EXPECT_EQ(arrived, 4u);
  }
}

TEST(FabricEnd, ARefusedKeyIsNamedAtItsSender) {
  TestNics world(in_order());
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  TestBuffer from(*world.left, 64, 5), to(*world.right, 64);
  auto works = works_of(from, to, 3);
  works[0].remote_key ^= 0x40'0000;
  for (const Work& work : works) ASSERT_EQ(post_one(*pair.left, work), Status::kOk);
  world.nics.step(), world.nics.step();
  const Error error = failure_of(world, *pair.left);
  EXPECT_EQ(error.status, Status::kRemote);
  EXPECT_EQ(error.code, FI_EACCES);
  EXPECT_EQ(error.what, "rail efa0 to " + pair.left->peer_name() +
                            ": fake error 13 (13; provider efa: fake device status 7, 7), with 3 "
                            "works not delivered; the peer refused the address or key: it has "
                            "closed, or deregistered that memory; look at its log first");
  EXPECT_EQ(to.bytes()[0], std::byte{0});
}

TEST(FabricEnd, APeerThatDoesNotAnswerIsNamed) {
  TestNics world(in_order());
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  TestBuffer from(*world.left, 64, 5), to(*world.right, 64);
  world.nics.fail_next(FI_EHOSTUNREACH, 13);
  ASSERT_EQ(post_one(*pair.left, works_of(from, to, 1)[0]), Status::kOk);
  const Error error = failure_of(world, *pair.left);
  EXPECT_EQ(error.code, FI_EHOSTUNREACH);
  EXPECT_THAT(error.what, HasSubstr(", with 1 work not delivered; the peer does not answer"));
}

TEST(FabricEnd, TheKeyOfMemoryThatIsGoneIsRefused) {
  TestNics world;
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  TestBuffer from(*world.left, 64, 5), to(*world.right, 64);
  const Work work = works_of(from, to, 1)[0];
  to.deregister();
  ASSERT_EQ(post_one(*pair.left, work), Status::kOk);
  EXPECT_EQ(failure_of(world, *pair.left).code, FI_EACCES);
  EXPECT_EQ(to.bytes()[0], std::byte{0});
}

// A NIC may still write completions of what it has written when the channel breaks.
TEST(FabricEnd, WhatHadArrivedIsReportedThoughTheChannelBroke) {
  TestNics world(in_order());
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  TestBuffer from(*world.left, 64, 5), to(*world.right, 64);
  TestBuffer back(*world.right, 8), target(*world.left, 8);
  for (const Work& work : works_of(from, to, 4)) ASSERT_EQ(post_one(*pair.left, work), Status::kOk);
  Work bad = works_of(back, target, 1)[0];
  bad.local -= 4'096;
  size_t taken = 0;
  EXPECT_EQ(pair.right->post({&bad, 1}, &taken), Status::kInvalid);
  Status status = Status::kOk;
  EXPECT_THAT(poll_once(*pair.right, &status), IsEmpty());
  EXPECT_EQ(status, Status::kOk) << "the NIC may still bring something";
  std::vector<Done> done;
  EXPECT_EQ(failure_of(world, *pair.right, &done).status, Status::kInvalid);
  EXPECT_EQ(number_of(done, Done::Kind::kArrived), 4u);
}

TEST(FabricEnd, WhatWasSentIsReportedThoughAWorkWithItsImmediateIsUnderWayAtTheClose) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    TestNics world({.seed = seed, .reorders = false});
    TestPair pair(world);
    ASSERT_TRUE(pair.connect());
    TestBuffer from(*world.left, 64, 5), to(*world.right, 64);
    const Work work = works_of(from, to, 1)[0];
    ASSERT_EQ(post_one(*pair.left, work), Status::kOk);
    world.settle();
    Status status = Status::kOk;
    ASSERT_EQ(poll_all(*pair.left, &status).size(), 1u) << "it was sent";
    ASSERT_EQ(post_one(*pair.left, work), Status::kOk);
    pair.left.reset();
    std::vector<Done> done;
    failure_of(world, *pair.right, &done);
    EXPECT_GE(done.size(), 1u) << seed;
  }
}

TEST(FabricEnd, NothingArrivesAfterTheFence) {
  TestNics world;
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  TestBuffer from(*world.left, 64, 5), to(*world.right, 64);
  for (const Work& work : works_of(from, to, 8)) ASSERT_EQ(post_one(*pair.left, work), Status::kOk);
  for (int i = 0; i < 5; ++i) world.nics.step();
  pair.right->fence();
  const auto before = to.bytes();
  EXPECT_EQ(failure_of(world, *pair.left).status, Status::kRemote);
  EXPECT_EQ(to.bytes(), before);
}

}  // namespace
}  // namespace slime::fabric
