#include "peer/blobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "transports/rail.h"

namespace slime {
namespace {

RegionAddress some_region() { return {*random_nonce(), 77, 88, 0x1000, 0x2000, kRemoteRead}; }

TEST(Blobs, AnAddressComesBackAsItWas) {
  EngineAddress engine;
  engine.engine = *random_nonce();
  engine.listener[5] = std::byte{9};
  const auto unpacked = unpack_engine(pack(engine));
  ASSERT_TRUE(unpacked) << unpacked.error().what;
  EXPECT_EQ(unpacked->engine, engine.engine);
  EXPECT_EQ(unpacked->listener, engine.listener);

  const RegionAddress region = some_region();
  const auto again = unpack_region(pack(region));
  ASSERT_TRUE(again) << again.error().what;
  EXPECT_EQ(again->engine, region.engine);
  EXPECT_EQ(again->region, region.region);
  EXPECT_EQ(again->nonce, region.nonce);
  EXPECT_EQ(again->base, region.base);
  EXPECT_EQ(again->bytes, region.bytes);
  EXPECT_EQ(again->rights, region.rights);
}

TEST(Blobs, OneThatWasChangedIsRefused) {
  std::mt19937 random(1);
  const RegionBlob region = pack(some_region());
  const auto engine = pack(EngineAddress{*random_nonce(), {}});
  for (int i = 0; i < 10'000; ++i) {
    RegionBlob changed = region;
    changed[random() % changed.size()] ^= static_cast<std::byte>(1 + random() % 255);
    EXPECT_FALSE(unpack_region(changed)) << i;
    auto other = engine;
    other[random() % other.size()] ^= static_cast<std::byte>(1 + random() % 255);
    EXPECT_FALSE(unpack_engine(other)) << i;
  }
}

TEST(Blobs, OneOfAnotherLengthOrKindIsRefusedInWords) {
  auto engine = pack(EngineAddress{});
  engine.pop_back();
  EXPECT_THAT(unpack_engine(engine).error().what, testing::HasSubstr("pass all bytes"));
  EXPECT_THAT(unpack_engine({}).error().what, testing::HasSubstr("0 bytes"));
  const RegionBlob zeros = {};
  EXPECT_THAT(unpack_region(zeros).error().what, testing::HasSubstr("no address of a region"));
}

TEST(Blobs, SayWhereTheMemoryIs) {
  RegionAddress region = some_region();
  for (const bool in_device : {false, true}) {
    region.in_device = in_device;
    const auto back = unpack_region(pack(region));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->in_device, in_device);
  }
}

TEST(Blobs, ARegionThatWrapsOrHasUnknownRightsIsRefused) {
  RegionAddress region = some_region();
  region.bytes = UINT64_MAX;
  EXPECT_FALSE(unpack_region(pack(region)));
  region = some_region();
  region.bytes = 0;
  EXPECT_FALSE(unpack_region(pack(region)));
  region = some_region();
  region.rights = 4;
  EXPECT_FALSE(unpack_region(pack(region)));
}

}  // namespace
}  // namespace slime
