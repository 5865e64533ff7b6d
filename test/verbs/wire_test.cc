// The address of a verbs channel, as strangers may have written it.
#include "transports/verbs/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace slime::verbs {
namespace {

using testing::HasSubstr;

Endpoint sound_endpoint() {
  Endpoint endpoint;
  endpoint.queue_pairs = 2;
  endpoint.mtu = IBV_MTU_1024;
  endpoint.gid = {0xfe, 0x80, 1};
  endpoint.lid = 7;
  endpoint.link_layer = IBV_LINK_LAYER_INFINIBAND;
  endpoint.nonce[15] = std::byte{9};
  endpoint.names[1] = {0x123456, 0xabcdef};
  return endpoint;
}

Result<Endpoint> changed(const std::function<void(Endpoint*)>& change) {
  Endpoint endpoint = sound_endpoint();
  change(&endpoint);
  return unpack_endpoint(pack_endpoint(endpoint));
}

bool refused(const std::function<void(Endpoint*)>& change) {
  const auto endpoint = changed(change);
  if (endpoint) return false;
  EXPECT_EQ(endpoint.error().status, Status::kRemote);
  EXPECT_THAT(endpoint.error().what, HasSubstr("no address of a verbs channel"));
  return true;
}

TEST(VerbsWire, AnEndpointComesOutAsItWentIn) {
  const auto endpoint = changed([](Endpoint*) {});
  ASSERT_TRUE(endpoint);
  const Endpoint sound = sound_endpoint();
  EXPECT_EQ(std::memcmp(&*endpoint, &sound, sizeof sound), 0);
}

TEST(VerbsWire, AnotherMagicIsRefused) {
  EXPECT_TRUE(refused([](Endpoint* it) { it->magic ^= 1; }));
  EXPECT_TRUE(refused([](Endpoint* it) { it->magic = __builtin_bswap32(it->magic); }));
  EXPECT_FALSE(unpack_endpoint(ChannelAddress{}));
}

TEST(VerbsWire, AnotherVersionIsRefusedWithBothNumbers) {
  EXPECT_TRUE(refused([](Endpoint* it) { it->version = 0; }));
  const auto newer = changed([](Endpoint* it) { it->version = kVersion + 1; });
  ASSERT_FALSE(newer);
  EXPECT_THAT(newer.error().what, HasSubstr("version 3, ours is 2"));
}

TEST(VerbsWire, NoneOrTooManyQueuePairsAreRefused) {
  for (const uint8_t count : {0, 9, 255}) {
    EXPECT_TRUE(refused([&](Endpoint* it) { it->queue_pairs = count; })) << int{count};
  }
  for (const uint8_t count : {1, 8}) {
    EXPECT_FALSE(refused([&](Endpoint* it) { it->queue_pairs = count; })) << int{count};
  }
}

TEST(VerbsWire, AnMtuThatVerbsDoesNotKnowIsRefused) {
  for (const uint8_t mtu : {0, 6, 255}) {
    EXPECT_TRUE(refused([&](Endpoint* it) { it->mtu = mtu; })) << int{mtu};
  }
  for (const uint8_t mtu : {uint8_t{IBV_MTU_256}, uint8_t{IBV_MTU_4096}}) {
    EXPECT_FALSE(refused([&](Endpoint* it) { it->mtu = mtu; })) << int{mtu};
  }
}

TEST(VerbsWire, NumbersOfReadsThatNoEndOffersAreRefused) {
  for (const auto reads : {&Endpoint::reads, &Endpoint::reads_of_peer}) {
    for (const uint8_t count : {0, kMostReads + 1, 255}) {
      EXPECT_TRUE(refused([&](Endpoint* it) { it->*reads = count; })) << int{count};
    }
    for (const uint8_t count : {1, kMostReads}) {
      EXPECT_FALSE(refused([&](Endpoint* it) { it->*reads = count; })) << int{count};
    }
  }
}

}  // namespace
}  // namespace slime::verbs
