// How verbs channels connect, and whom they refuse.
#include <cerrno>
#include <cstddef>

#include "test/verbs/support.h"
#include "transports/verbs/wire.h"

namespace slime::verbs {
namespace {

ChannelAddress changed(const ChannelAddress& address, const std::function<void(Endpoint*)>& how) {
  Endpoint endpoint = *unpack_endpoint(address);
  how(&endpoint);
  return pack_endpoint(endpoint);
}

void expect_named(const Error& error, const char* rail, const char* peer) {
  EXPECT_THAT(error.what, HasSubstr(std::string("rail ") + rail + " (qp 0x"));
  EXPECT_THAT(error.what, HasSubstr(std::string(" to ") + peer + " (qp 0x"));
}

TEST(VerbsSetup, AnAddressHasWhatThePeerNeeds) {
  FakeVerbsOptions options;
  options.mtu = IBV_MTU_2048;
  TestNics world(verbs_settings(3), options);
  const auto channel = open_channel(*world.left, true), other = open_channel(*world.left, true);
  const auto own = unpack_endpoint(channel->address());
  ASSERT_TRUE(own);
  EXPECT_EQ(own->queue_pairs, 3);
  EXPECT_EQ(own->mtu, IBV_MTU_2048);
  EXPECT_EQ(own->link_layer, IBV_LINK_LAYER_ETHERNET);
  EXPECT_EQ(to_string(own->gid), "::ffff:10.77.0.1");
  EXPECT_FALSE(own->nonce == unpack_endpoint(other->address())->nonce);
  for (const QueuePairName& name : own->names) EXPECT_LE(name.first_psn, 0xffffffu);
  EXPECT_NE(own->names[0].number, own->names[1].number);
}

TEST(VerbsSetup, ConnectsWhicheverEndIsAskedFirst) {
  for (const bool left_begins : {true, false}) {
    TestNics world;
    TestPair pair(world);
    const ChannelAddress left = pair.left->address(), right = pair.right->address();
    (left_begins ? pair.left : pair.right)->connect(left_begins ? right : left);
    EXPECT_TRUE(pair.connect());
    EXPECT_EQ(pair.left->peer_name().substr(0, 16), "::ffff:10.77.0.2");
  }
}

TEST(VerbsSetup, ConnectsOverInfiniBand) {
  FakeVerbsOptions options;
  options.ethernet = false;
  TestNics world(verbs_settings(2), options);
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  TestBuffer from(*world.left, 8, 5), to(*world.right, 8);
  ASSERT_EQ(post_one(*pair.left, work_of(from, to, 8)), Status::kOk);
  world.settle();
  EXPECT_EQ(to.bytes(), from.bytes());
}

TEST(VerbsSetup, AnotherKindOfAddressIsRefused) {
  TestNics world;
  const auto channel = open_channel(*world.left, true);
  EXPECT_EQ(channel->connect({}), Status::kRemote);
  EXPECT_THAT(channel->failure().what, HasSubstr("no address of a verbs channel"));
  EXPECT_THAT(channel->failure().what, HasSubstr("rail fake0"));
  EXPECT_EQ(channel->connect({}), Status::kRemote) << "it stays so";
}

TEST(VerbsSetup, AnotherLinkLayerIsRefusedByName) {
  TestNics world;
  TestPair pair(world);
  const ChannelAddress infiniband = changed(
      pair.right->address(), [](Endpoint* it) { it->link_layer = IBV_LINK_LAYER_INFINIBAND; });
  EXPECT_EQ(pair.left->connect(infiniband), Status::kConfig);
  EXPECT_THAT(pair.left->failure().what, HasSubstr("another link layer"));
  EXPECT_THAT(pair.left->failure().what, HasSubstr("NCCL_SLIME_HCA"));
  expect_named(pair.left->failure(), "fake0", "::ffff:10.77.0.2");
}

// The right end takes the left one for another channel, so its hello has another nonce.
TEST(VerbsSetup, AHelloForAnotherChannelIsAStrangers) {
  TestNics world;
  TestPair pair(world);
  pair.connect(changed(pair.left->address(), [](Endpoint* it) { it->nonce[3] ^= std::byte{1}; }),
               pair.right->address());
  EXPECT_EQ(pair.left_status, Status::kRemote);
  EXPECT_THAT(pair.left->failure().what, HasSubstr("the hello is not our peer"));
  expect_named(pair.left->failure(), "fake0", "::ffff:10.77.0.2");
  EXPECT_EQ(pair.right_status, Status::kAgain);
}

TEST(VerbsSetup, AHelloOfAnotherChannelIsAStrangers) {
  TestNics world;
  TestPair pair(world);
  pair.connect(pair.left->address(),
               changed(pair.right->address(), [](Endpoint* it) { it->nonce[3] ^= std::byte{1}; }));
  EXPECT_EQ(pair.left_status, Status::kRemote);
  EXPECT_THAT(pair.left->failure().what, HasSubstr("the hello is not our peer"));
}

TEST(VerbsSetup, APeerThatDoesNotAnswerIsATimeOut) {
  Settings settings = verbs_settings();
  settings.connect_timeout = 0.01;
  TestNics world(settings);
  TestPair pair(world);
  Status status = Status::kAgain;
  ASSERT_TRUE(eventually(
      [&] { return (status = pair.left->connect(pair.right->address())) != Status::kAgain; }));
  EXPECT_EQ(status, Status::kTimeout);
  const Error& error = pair.left->failure();
  EXPECT_EQ(error.code, ETIMEDOUT);
  EXPECT_THAT(error.what, HasSubstr("did not answer within 0.01 s (NCCL_SLIME_CONNECT_TIMEOUT)"));
  EXPECT_THAT(error.what, HasSubstr("GID (index 1, ::ffff:10.77.0.1)"));
  expect_named(error, "fake0", "::ffff:10.77.0.2");
}

TEST(VerbsSetup, AnUnreachablePeerFailsTheHello) {
  TestNics world(verbs_settings());
  TestPair pair(world);
  world.nics.set_link(0, false);
  ASSERT_EQ(pair.right->connect(pair.left->address()), Status::kAgain);
  Status status = Status::kAgain;
  ASSERT_TRUE(eventually([&] {
    world.settle();
    return (status = pair.right->connect(pair.left->address())) != Status::kAgain;
  }));
  EXPECT_EQ(status, Status::kRemote);
  EXPECT_THAT(pair.right->failure().what, HasSubstr("the peer's NIC does not answer"));
  expect_named(pair.right->failure(), "fake1", "::ffff:10.77.0.1");
}

// On several queue pairs works of a ready peer may be faster than its hello. None is lost.
TEST(VerbsSetup, WorksThatOvertakeTheHelloAreKept) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    FakeVerbsOptions options;
    options.seed = seed;
    TestNics world(verbs_settings(6), options);
    TestPair pair(world);
    ASSERT_EQ(pair.left->connect(pair.right->address()), Status::kAgain);
    ASSERT_EQ(pair.right->connect(pair.left->address()), Status::kAgain);
    world.settle();
    ASSERT_EQ(pair.left->connect(pair.right->address()), Status::kOk);
    for (uint32_t i = 0; i < 60; ++i) {
      Work work;
      work.immediate = i;
      ASSERT_EQ(post_one(*pair.left, work), Status::kOk);
    }
    world.settle();
    ASSERT_EQ(pair.right->connect(pair.left->address()), Status::kOk);
    Status status = Status::kOk;
    uint64_t sum = 0;
    for (const Done& done : poll_all(*pair.right, &status)) sum += done.immediate;
    EXPECT_EQ(sum, 59u * 60 / 2) << seed;
  }
}

TEST(VerbsSetup, WithoutMemoryNoChannelOpensAndNothingIsLeft) {
  TestNics world;
  const size_t before = world.nics.objects();
  world.nics.fail_registrations(ENOMEM);
  const auto channel = world.left->open_channel({});
  ASSERT_FALSE(channel);
  EXPECT_EQ(channel.error().status, Status::kNoMemory);
  EXPECT_THAT(channel.error().what, HasSubstr("rail fake0: ibv_reg_mr"));
  EXPECT_THAT(channel.error().what, HasSubstr("`ulimit -l`"));
  EXPECT_EQ(world.nics.objects(), before);
}

}  // namespace
}  // namespace slime::verbs
