// What becomes of verbs channels when a device fails, or a port changes under them.
#include "test/support/kept_warnings.h"
#include "test/verbs/support.h"

namespace slime::verbs {
namespace {

// Polls as an idle channel's owner does, until the channel has looked for events of its device.
Status poll_idle(TestNics& world, size_t device, Channel& channel) {
  Status status = Status::kOk;
  const uint64_t before = world.nics.counts(device).looks;
  EXPECT_TRUE(eventually([&] {
    EXPECT_THAT(poll_once(channel, &status), IsEmpty());
    return status != Status::kOk || world.nics.counts(device).looks > before;
  }));
  if (status == Status::kOk) poll_once(channel, &status);  // a failure that the look has found
  return status;
}

void expect_data(TestNics& world, TestPair& pair) {
  TestBuffer from(*world.left, 4'096, 3), to(*world.right, 4'096);
  ASSERT_EQ(post_one(*pair.left, work_of(from, to, 4'096)), Status::kOk);
  world.settle();
  EXPECT_EQ(to.bytes(), from.bytes());
  Status status = Status::kOk;
  EXPECT_EQ(poll_all(*pair.right, &status).size(), 1u);
  EXPECT_EQ(poll_all(*pair.left, &status).size(), 1u);
  EXPECT_EQ(status, Status::kOk);
}

FakeVerbsOptions infiniband() {
  FakeVerbsOptions options;
  options.ethernet = false;
  return options;
}

constexpr char kFailed[] = "device fake0 has failed (IBV_EVENT_DEVICE_FATAL";

TEST(VerbsChange, ADeviceThatFailedIsDownOnAllItsPorts) {
  const test::KeptWarnings warnings("device fake0: ");
  FakeVerbsOptions options;
  options.ports = 2;
  FakeVerbs nics(options);
  const auto rails = open_verbs_rails(nics.symbols(), nics.sysfs_root(), verbs_settings(), nullptr);
  ASSERT_TRUE(rails);
  ASSERT_EQ(rails->size(), 4u);
  nics.raise(0, IBV_EVENT_DEVICE_FATAL);
  for (const auto& rail : *rails) {
    const bool failed = rail->caps().name.starts_with("fake0:");
    EXPECT_EQ(rail->carrier(), failed ? Carrier::kDown : Carrier::kUp) << rail->caps().name;
  }
  EXPECT_EQ(warnings.lines().size(), 1u);
}

TEST(VerbsChange, ADeviceThatFailedOpensNothingMore) {
  const test::KeptWarnings warnings("device fake0: ");
  TestNics world;
  world.nics.raise(0, IBV_EVENT_DEVICE_FATAL);
  const auto channel = world.left->open_channel({});
  ASSERT_FALSE(channel);
  EXPECT_EQ(channel.error().status, Status::kSystem);
  EXPECT_THAT(channel.error().what, HasSubstr(kFailed));
  const auto flusher = world.left->open_flusher();
  ASSERT_FALSE(flusher);
  EXPECT_THAT(flusher.error().what, HasSubstr(kFailed));
  EXPECT_TRUE(world.right->open_channel({})) << "that of another device";
}

TEST(VerbsChange, ConnectFailsWithItsDevice) {
  for (const bool under_way : {false, true}) {
    const test::KeptWarnings warnings("device fake0: ");
    TestNics world;
    TestPair pair(world);
    const ChannelAddress right = pair.right->address();
    if (under_way) {
      ASSERT_EQ(pair.left->connect(right), Status::kAgain);
    }
    world.nics.raise(0, IBV_EVENT_DEVICE_FATAL);
    EXPECT_EQ(pair.left->connect(right), Status::kSystem);
    EXPECT_THAT(pair.left->failure().what, HasSubstr("rail fake0 (qp 0x"));
    EXPECT_THAT(pair.left->failure().what, HasSubstr(kFailed));
    EXPECT_EQ(pair.left->connect(right), Status::kSystem) << "it stays so";
  }
}

TEST(VerbsChange, AnIdleChannelFailsWhenItsGidChanges) {
  TestNics world;
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  world.nics.set_gid(0, 1, "::ffff:10.77.0.9");
  world.nics.raise(0, IBV_EVENT_GID_CHANGE);
  EXPECT_EQ(poll_idle(world, 0, *pair.left), Status::kSystem);
  EXPECT_THAT(pair.left->failure().what, HasSubstr("rail fake0 (qp 0x"));
  EXPECT_THAT(pair.left->failure().what,
              HasSubstr("entry 1 of its GID table is not ::ffff:10.77.0.1 any more"));
  EXPECT_EQ(world.left->carrier(), Carrier::kUp);
}

TEST(VerbsChange, ANewChannelTakesTheNewGid) {
  TestNics world;
  {
    TestPair old(world);
    ASSERT_TRUE(old.connect());
    world.nics.set_gid(0, 1, "::ffff:10.77.0.9");
    world.nics.raise(0, IBV_EVENT_GID_CHANGE);
    EXPECT_EQ(poll_idle(world, 0, *old.left), Status::kSystem);
  }
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  EXPECT_EQ(to_string(unpack_endpoint(pair.left->address())->gid), "::ffff:10.77.0.9");
  EXPECT_THAT(pair.right->peer_name(), HasSubstr("::ffff:10.77.0.9"));
  expect_data(world, pair);
  EXPECT_EQ(poll_idle(world, 0, *pair.left), Status::kOk) << pair.left->failure().what;
}

// The port has lost the entry that was the best, and has another one.
TEST(VerbsChange, ANewChannelChoosesAnotherEntryOfTheTable) {
  TestNics world;
  world.nics.set_gid(0, 1, "::");
  world.nics.raise(0, IBV_EVENT_GID_CHANGE);
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  EXPECT_EQ(to_string(unpack_endpoint(pair.left->address())->gid), "fe80::1");
  expect_data(world, pair);
}

TEST(VerbsChange, AnotherEntryOfTheTableIsNotOurs) {
  TestNics world;
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  world.nics.set_gid(0, 0, "fe80::9");
  world.nics.raise(0, IBV_EVENT_GID_CHANGE);
  EXPECT_EQ(poll_idle(world, 0, *pair.left), Status::kOk) << pair.left->failure().what;
  expect_data(world, pair);
}

TEST(VerbsChange, EventsWithoutAChangeLeaveChannelsAlone) {
  for (const FakeVerbsOptions& options : {FakeVerbsOptions(), infiniband()}) {
    TestNics world(verbs_settings(), options);
    TestPair pair(world);
    ASSERT_TRUE(pair.connect());
    for (const ibv_event_type type :
         {IBV_EVENT_GID_CHANGE, IBV_EVENT_LID_CHANGE, IBV_EVENT_PKEY_CHANGE, IBV_EVENT_SM_CHANGE,
          IBV_EVENT_CLIENT_REREGISTER, IBV_EVENT_QP_FATAL}) {
      world.nics.raise(0, type);
      EXPECT_EQ(poll_idle(world, 0, *pair.left), Status::kOk) << pair.left->failure().what;
    }
    expect_data(world, pair);
  }
}

TEST(VerbsChange, AnIdleChannelFailsWhenItsLidChanges) {
  TestNics world(verbs_settings(), infiniband());
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  world.nics.set_lid(0, 77);
  world.nics.raise(0, IBV_EVENT_LID_CHANGE);
  EXPECT_EQ(poll_idle(world, 0, *pair.left), Status::kSystem);
  EXPECT_THAT(pair.left->failure().what, HasSubstr("its LID is 77 now, and was 1"));
  TestPair again(world);
  ASSERT_TRUE(again.connect());
  EXPECT_EQ(unpack_endpoint(again.left->address())->lid, 77);
  expect_data(world, again);
}

// The NIC sends again what was lost: with these settings for more than a minute.
TEST(VerbsChange, APortThatComesBackLosesNothing) {
  for (const FakeVerbsOptions& options : {FakeVerbsOptions(), infiniband()}) {
    Settings settings = verbs_settings(2);
    settings.ib_timeout = 24;
    TestNics world(settings, options);
    TestPair pair(world);
    ASSERT_TRUE(pair.connect());
    world.nics.set_link(0, false);
    for (int i = 0; i < 10; ++i) ASSERT_EQ(post_one(*pair.left, Work()), Status::kOk);
    world.settle();
    EXPECT_EQ(poll_idle(world, 0, *pair.left), Status::kOk) << pair.left->failure().what;
    EXPECT_EQ(poll_idle(world, 1, *pair.right), Status::kOk) << pair.right->failure().what;
    const auto refused = world.left->open_channel({});
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().what, HasSubstr("fake0:1 is not active"));
    world.nics.set_link(0, true);
    world.settle();
    Status status = Status::kOk;
    EXPECT_EQ(poll_all(*pair.right, &status).size(), 10u);
    EXPECT_EQ(poll_all(*pair.left, &status).size(), 10u);
    expect_data(world, pair);
  }
}

}  // namespace
}  // namespace slime::verbs
