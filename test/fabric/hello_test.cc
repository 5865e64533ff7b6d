// What the ends of a channel tell each other of their endpoints.
#include "transports/fabric/side_connection.h"

#include "test/fabric/support.h"

namespace slime::fabric {
namespace {

Hello sound_hello(uint32_t name_bytes = 32) {
  Hello hello;
  hello.flags = kWantsConfirmations;
  hello.name_bytes = name_bytes;
  hello.scratch_address = 0x7f00'0000'1000;
  hello.scratch_key = 0x1100;
  hello.name.fill(std::byte{0x61});
  return hello;
}

std::string refusal_of(const Hello& hello) {
  const auto unpacked = unpack(pack(hello));
  return unpacked ? "" : unpacked.error().what;
}

TEST(FabricHello, ComesAsItWasSent) {
  const auto hello = unpack(pack(sound_hello()));
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->flags, kWantsConfirmations);
  EXPECT_EQ(hello->scratch_address, 0x7f00'0000'1000u);
  EXPECT_EQ(hello->scratch_key, 0x1100u);
  EXPECT_EQ(name_in(*hello).size(), 32u);
}

// Some providers read a name as a string.
TEST(FabricHello, ZerosFollowTheName) {
  const auto hello = unpack(pack(sound_hello(255)));
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->name[254], std::byte{0x61});
  EXPECT_EQ(hello->name[255], std::byte{0});
}

TEST(FabricHello, ANameHasOneTo255Bytes) {
  EXPECT_EQ(refusal_of(sound_hello(1)), "");
  for (const uint32_t bytes : {0u, 256u, 257u, UINT32_MAX}) {
    EXPECT_THAT(refusal_of(sound_hello(bytes)), HasSubstr("is not that of a libfabric channel"));
  }
}

TEST(FabricHello, AnotherMagicAndAnotherVersionAreNamed) {
  Hello hello = sound_hello();
  hello.magic = 0x12345678;
  EXPECT_THAT(refusal_of(hello), HasSubstr("(288 bytes, magic 0x12345678, version 2, ours is 2)"));
  hello = sound_hello();
  hello.version = 3;
  EXPECT_THAT(refusal_of(hello), HasSubstr("version 3, ours is 2); use the same libnet-slime"));
}

TEST(FabricHello, AnotherLengthIsRefused) {
  std::vector<uint32_t> words = pack(sound_hello());
  EXPECT_FALSE(unpack(std::span(words).first(words.size() - 1)));
  words.push_back(0);
  EXPECT_FALSE(unpack(words));
  EXPECT_FALSE(unpack({}));
}

}  // namespace
}  // namespace slime::fabric
