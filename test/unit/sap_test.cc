#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

#include "switch/protocol/sap.h"

namespace slime::sap {
namespace {

Header full_header() {
  return {.type = Type::kContribution,
          .format = Format::kU64,
          .op = Op::kMax,
          .flags = flag::kFallback,
          .job = 0x1234,
          .generation = 0x56,
          .child = 31,
          .token = 0x0badcafe,
          .slot = 0x789a,
          .lanes = 2,
          .epoch = 0xbcdef012,
          .cookie = 0x3456789a,
          .exponents = {-127, 127},
          .special = special::kNan | special::kUnknown,
          .level = 0,
          .check = 0xdeadbeef};
}

std::vector<std::byte> datagram_of(const Header& header) {
  std::vector<std::byte> bytes(kHeaderBytes + 4 * size_t{header.lanes});
  encode(header, bytes.data());
  return bytes;
}

TEST(Sap, HeaderIsWhereTheProtocolPutsIt) {
  const auto bytes = datagram_of(full_header());
  const uint8_t want[kHeaderBytes] = {0xA2, 1,    0x72, 2,    0x12, 0x34, 0x56, 31,
                                      0x0b, 0xad, 0xca, 0xfe, 0x78, 0x9a, 0,    2,
                                      0xbc, 0xde, 0xf0, 0x12, 0x34, 0x56, 0x78, 0x9a,
                                      0x81, 0x7f, 0x21, 0,    0xde, 0xad, 0xbe, 0xef};
  for (size_t i = 0; i < kHeaderBytes; ++i) EXPECT_EQ(wire::get8(&bytes[i]), want[i]) << i;
}

TEST(Sap, DecodesWhatItEncodes) {
  Header header;
  const auto bytes = datagram_of(full_header());
  ASSERT_EQ(decode(bytes, &header), Fault::kNone);
  EXPECT_EQ(datagram_of(header), bytes);
}

TEST(Sap, RefusesEveryOtherLength) {
  Header header;
  auto bytes = datagram_of(full_header());
  bytes.resize(64);
  for (size_t size = 0; size <= bytes.size(); ++size) {
    const Fault fault = decode(std::span(bytes).first(size), &header);
    EXPECT_EQ(fault, size < kHeaderBytes        ? Fault::kShort
                     : size == kHeaderBytes + 8 ? Fault::kNone
                                                : Fault::kLength)
        << size;
  }
}

Fault fault_with(size_t at, int value, size_t lanes = 2) {
  Header header = full_header();
  header.lanes = static_cast<uint16_t>(lanes);
  auto bytes = datagram_of(header);
  bytes[at] = static_cast<std::byte>(value);
  return decode(bytes, &header);
}

TEST(Sap, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(fault_with(0, 0xB1), Fault::kNotSap);
  EXPECT_EQ(fault_with(0, 0xA1), Fault::kVersion);
  EXPECT_EQ(fault_with(0, 0xA3), Fault::kVersion);
  EXPECT_EQ(fault_with(1, 0), Fault::kType);
  EXPECT_EQ(fault_with(1, 9), Fault::kType);
  EXPECT_EQ(fault_with(2, 0x50), Fault::kType);  // no such format
  EXPECT_EQ(fault_with(2, 0x80), Fault::kType);
  EXPECT_EQ(fault_with(2, 0x04), Fault::kType);  // no such op
  EXPECT_EQ(fault_with(3, 4), Fault::kType);
  EXPECT_EQ(fault_with(7, 32), Fault::kField);
  EXPECT_EQ(fault_with(27, 1), Fault::kField);  // a level, but not a partial sum
}

TEST(Sap, KnowsHowLongEachTypeIs) {
  const auto at = [](Type type, uint8_t flags, uint16_t lanes) {
    Header header = full_header();
    header.type = type;
    header.flags = flags;
    header.lanes = lanes;
    return length_fits(header);
  };
  EXPECT_TRUE(at(Type::kQuery, 0, 0));
  EXPECT_FALSE(at(Type::kQuery, 0, 1));
  EXPECT_TRUE(at(Type::kStatus, 0, 1));
  EXPECT_TRUE(at(Type::kReject, 0, 1));
  EXPECT_FALSE(at(Type::kReject, 0, 2));
  EXPECT_FALSE(at(Type::kContribution, 0, 0));
  EXPECT_TRUE(at(Type::kContribution, 0, kMaxLanes));
  EXPECT_FALSE(at(Type::kContribution, 0, kMaxLanes + 1));
  EXPECT_TRUE(at(Type::kResult, flag::kExponentsOnly, 0));
  EXPECT_FALSE(at(Type::kResult, flag::kExponentsOnly, 1));
}

// Whatever decodes, encodes to the same bytes: nothing in a header is ignored.
TEST(Sap, RandomBytes) {
  std::mt19937 random(1);
  std::array<std::byte, kHeaderBytes> bytes, again;
  Header header;
  size_t decoded = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    bytes[0] = std::byte{0xA2};
    bytes[1] = static_cast<std::byte>(random() % 10);
    bytes[2] = static_cast<std::byte>((random() % 9) << 4 | random() % 5);
    bytes[3] = static_cast<std::byte>(random() % 5);
    bytes[14] = bytes[15] = std::byte{0};
    bytes[7] = static_cast<std::byte>(random() % 34);
    bytes[27] = static_cast<std::byte>(random() % 2);
    if (decode(bytes, &header) != Fault::kNone) continue;
    ++decoded;
    encode(header, again.data());
    ASSERT_EQ(bytes, again);
  }
  EXPECT_GT(decoded, 1000u);
}

}  // namespace
}  // namespace slime::sap
