// What a verbs rail finds out though nothing is posted: about its port, its device, an idle peer.
#include "test/support/kept_warnings.h"
#include "test/verbs/support.h"

namespace slime::verbs {
namespace {

// An idle channel asks after 5 ms whether its peer lives.
Settings asking_settings(int lanes = 1) {
  Settings settings = verbs_settings(lanes);
  settings.peer_timeout = 0.02;
  return settings;
}

TEST(VerbsHealth, TheCarrierFollowsThePort) {
  TestNics world;
  EXPECT_EQ(world.left->carrier(), Carrier::kUp);
  world.nics.set_link(0, false);
  EXPECT_EQ(world.left->carrier(), Carrier::kDown);
  EXPECT_EQ(world.right->carrier(), Carrier::kUp) << "that of another device";
  world.nics.set_link(0, true);
  EXPECT_EQ(world.left->carrier(), Carrier::kUp);
}

TEST(VerbsHealth, OtherEventsLeaveTheCarrierAsItIs) {
  TestNics world;
  world.nics.set_link(0, true);
  for (const ibv_event_type type : {IBV_EVENT_LID_CHANGE, IBV_EVENT_GID_CHANGE, IBV_EVENT_QP_FATAL,
                                    IBV_EVENT_QP_ACCESS_ERR, IBV_EVENT_COMM_EST}) {
    world.nics.raise(0, type);
    EXPECT_EQ(world.left->carrier(), Carrier::kUp) << type;
  }
}

TEST(VerbsHealth, ADeviceThatFailsIsNamed) {
  const test::KeptWarnings warnings("device fake0: ");
  TestNics world;
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  world.nics.raise(0, IBV_EVENT_DEVICE_FATAL);
  Status status = Status::kOk;
  EXPECT_TRUE(eventually([&] {
    poll_once(*pair.left, &status);
    return status != Status::kOk;
  }));
  EXPECT_EQ(status, Status::kSystem);
  EXPECT_THAT(pair.left->failure().what, HasSubstr("rail fake0 (qp 0x"));
  EXPECT_THAT(pair.left->failure().what, HasSubstr("IBV_EVENT_DEVICE_FATAL"));
  EXPECT_EQ(warnings.lines().size(), 1u);
  poll_all(*pair.right, &status);
  EXPECT_EQ(status, Status::kOk) << "its own device lives";
}

TEST(VerbsHealth, ADeadPeerIsNoticedThoughNothingIsPosted) {
  TestNics world(asking_settings());
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  world.nics.set_link(1, false);
  const Error error = failure_of(world, *pair.left);
  EXPECT_EQ(error.status, Status::kRemote);
  EXPECT_EQ(error.code, IBV_WC_RETRY_EXC_ERR);
  EXPECT_THAT(error.what, HasSubstr("; the peer's NIC does not answer"));
}

// The end of a process: its queue pairs are gone, and nothing was said.
TEST(VerbsHealth, APeerThatEndedWithWorksUnderWayIsNoticedToo) {
  TestNics world(asking_settings(2));
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  ASSERT_EQ(post_one(*pair.right, Work()), Status::kOk);
  pair.right.reset();
  EXPECT_EQ(failure_of(world, *pair.left).code, IBV_WC_RETRY_EXC_ERR);
}

// The peer never polls: its NIC answers for it.
TEST(VerbsHealth, AnIdlePeerThatLivesIsAskedAndNotDisturbed) {
  TestNics world(asking_settings());
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  const uint64_t before = world.nics.counts(0).sends;
  Status status = Status::kOk;
  EXPECT_TRUE(eventually([&] {
    world.settle();
    EXPECT_TRUE(poll_once(*pair.left, &status).empty());
    return status != Status::kOk || world.nics.counts(0).sends - before >= 3;
  }));
  EXPECT_EQ(status, Status::kOk) << pair.left->failure().what;
  EXPECT_TRUE(poll_all(*pair.right, &status).empty());
  EXPECT_EQ(status, Status::kOk) << pair.right->failure().what;
}

// The works ask by themselves. At most one question is under way, too.
TEST(VerbsHealth, AChannelWithWorksUnderWayAsksNothing) {
  for (const bool works_under_way : {true, false}) {
    TestNics world(asking_settings());
    TestPair pair(world);
    ASSERT_TRUE(pair.connect());
    const uint64_t before = world.nics.counts(0).sends;
    if (works_under_way) {
      ASSERT_EQ(post_one(*pair.left, Work()), Status::kOk);
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
    Status status = Status::kOk;
    while (std::chrono::steady_clock::now() < end) poll_once(*pair.left, &status);
    EXPECT_EQ(status, Status::kOk);
    EXPECT_LE(world.nics.counts(0).sends - before, 1u) << works_under_way;
  }
}

}  // namespace
}  // namespace slime::verbs
