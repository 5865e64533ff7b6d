// The choice among the GIDs of a port.
#include "transports/verbs/device/gid.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slime::verbs {
namespace {

using testing::HasSubstr;

Gid gid_of(const char* text) {
  Gid gid;
  EXPECT_EQ(::inet_pton(AF_INET6, text, gid.data()), 1) << text;
  return gid;
}

struct Row {
  const char* gid;
  GidType type = GidType::kRoceV2;
};

std::vector<GidEntry> table_of(const std::vector<Row>& rows) {
  std::vector<GidEntry> table;
  for (const Row& row : rows) {
    table.push_back({static_cast<int>(table.size()), gid_of(row.gid), row.type});
  }
  return table;
}

// -1: none. Warnings are failures.
int chosen(const std::vector<Row>& rows, const GidWish& wish = {}) {
  std::string warning;
  const auto entry = choose_gid(table_of(rows), wish, &warning);
  EXPECT_EQ(warning, "");
  return entry ? entry->index : -1;
}

GidWish wish_of(const Settings& settings) {
  auto wish = parse_wish(settings);
  EXPECT_TRUE(wish) << wish.error().what;
  return wish ? *wish : GidWish();
}

GidWish wish_for_range(const char* range) {
  Settings settings;
  settings.addr_range = range;
  return wish_of(settings);
}

TEST(VerbsGid, LinkLocalComesLast) {
  EXPECT_EQ(chosen({{"fe80::1"}, {"2001:db8::1"}}), 1);
  EXPECT_EQ(chosen({{"febf::1"}, {"fec0::1"}}), 1) << "a prefix of ten bits";
  EXPECT_EQ(chosen({{"fe80::1"}, {"fd00::1", GidType::kRoceV1}}), 1) << "rather another type";
  EXPECT_EQ(chosen({{"fe80::1"}, {"fd00::1"}}, wish_for_range("fe80::/10")), 0)
      << "as was asked for";
  EXPECT_EQ(chosen({{"fe80::1"}}), 0) << "rather than none";
}

TEST(VerbsGid, TheWishedAddressFamilyComesFirst) {
  const std::vector<Row> rows = {{"fd00::1"}, {"::ffff:10.0.0.1"}, {"fd00::2"}};
  EXPECT_EQ(chosen(rows), 1);
  Settings settings;
  settings.addr_family = "AF_INET6";
  EXPECT_EQ(chosen(rows, wish_of(settings)), 0);
  EXPECT_EQ(chosen({{"::ffff:10.0.0.1"}}, wish_of(settings)), 0) << "rather than none";
}

TEST(VerbsGid, TheWishedRoceVersionComesFirst) {
  const std::vector<Row> rows = {{"::ffff:10.0.0.1", GidType::kRoceV1}, {"::ffff:10.0.0.1"}};
  EXPECT_EQ(chosen(rows), 1);
  Settings settings;
  settings.roce_version = 1;
  EXPECT_EQ(chosen(rows, wish_of(settings)), 0);
}

TEST(VerbsGid, TheLowestIndexOfEqualOnes) {
  EXPECT_EQ(chosen({{"::"}, {"::ffff:10.0.0.1"}, {"::ffff:10.0.0.2"}}), 1);
}

TEST(VerbsGid, ARangeIsStrongerThanFamilyAndType) {
  const std::vector<Row> rows = {
      {"::ffff:10.1.0.1"}, {"::ffff:10.2.0.1"}, {"fd00:1::1"}, {"fd00:2::1", GidType::kRoceV1}};
  EXPECT_EQ(chosen(rows, wish_for_range("10.2.0.0/16")), 1);
  EXPECT_EQ(chosen(rows, wish_for_range("fd00:1::/32")), 2);
  EXPECT_EQ(chosen(rows, wish_for_range("fd00:2::/32")), 3);
}

TEST(VerbsGid, WhereNoneIsInTheRangeAnotherIsTakenWithAWarning) {
  std::string warning;
  const auto entry =
      choose_gid(table_of({{"::ffff:10.1.0.1"}}), wish_for_range("192.168.0.0/16"), &warning);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->index, 0);
  EXPECT_THAT(warning, HasSubstr("NCCL_SLIME_ADDR_RANGE"));
  EXPECT_THAT(warning, HasSubstr("10.1.0.1 is taken"));
}

TEST(VerbsGid, ARangeEndsAtItsLastBit) {
  const std::vector<Row> rows = {{"::ffff:10.1.128.1"}, {"::ffff:10.1.0.1"}};
  EXPECT_EQ(chosen(rows, wish_for_range("10.1.0.0/16")), 0);
  EXPECT_EQ(chosen(rows, wish_for_range("10.1.0.0/17")), 1);
  EXPECT_EQ(chosen(rows, wish_for_range("10.1.0.1/32")), 1);
  EXPECT_EQ(chosen({{"fd00::1"}, {"::ffff:1.2.3.4"}}, wish_for_range("0.0.0.0/0")), 1)
      << "any IPv4 address";
  EXPECT_EQ(chosen({{"fd00::1"}, {"fd00::2"}}, wish_for_range("fd00::2/128")), 1);
}

TEST(VerbsGid, ARangeIsAPrefixOfBits) {
  const GidWish v4 = wish_for_range("10.1.0.0/16"), v6 = wish_for_range("fd00::/8");
  EXPECT_EQ(v4.prefix, gid_of("::ffff:10.1.0.0"));
  EXPECT_EQ(v4.prefix_bits, 112);
  EXPECT_EQ(v6.prefix, gid_of("fd00::"));
  EXPECT_EQ(v6.prefix_bits, 8);
  EXPECT_FALSE(wish_of({}).prefix);
}

TEST(VerbsGid, AMalformedRangeIsRefusedByTheNameOfItsVariable) {
  for (const char* const range : {"10.1.0.0", "10.1.0.0/", "10.1.0.0/33", "10.1.0.0/-1",
                                  "10.1.0.0/8x", "10.1.0.0/8/9", "10.1/16", "fd00::", "fd00::/129",
                                  "fd00::/ 8", "/8", "/", "eth0/8", "10.1.0.0/99999999999"}) {
    Settings settings;
    settings.addr_range = range;
    const auto wish = parse_wish(settings);
    ASSERT_FALSE(wish) << range;
    EXPECT_EQ(wish.error().status, Status::kConfig) << range;
    EXPECT_THAT(wish.error().what,
                HasSubstr(variable_of("NCCL_SLIME_ADDR_RANGE") + "=" + range + " "));
  }
}

TEST(VerbsGid, AnIndexThatWasAskedForIsTaken) {
  Settings settings;
  settings.gid_index = 0;
  EXPECT_EQ(chosen({{"fe80::1", GidType::kRoceV1}, {"::ffff:10.0.0.1"}}, wish_of(settings)), 0);
}

TEST(VerbsGid, AnIndexThatIsNotInUseIsReplacedWithAWarning) {
  const auto table = table_of({{"fe80::1"}, {"::"}, {"::ffff:10.0.0.1"}});
  for (const int index : {1, 3, 1023}) {
    Settings settings;
    settings.gid_index = index;
    std::string warning;
    const auto entry = choose_gid(table, wish_of(settings), &warning);
    ASSERT_TRUE(entry);
    EXPECT_EQ(entry->index, 2);
    EXPECT_THAT(warning, HasSubstr("GID index " + std::to_string(index) + " (" +
                                   variable_of("NCCL_SLIME_GID_INDEX") + ")"));
  }
}

TEST(VerbsGid, AnEmptyTableIsAnError) {
  for (const auto& table : {table_of({}), table_of({{"::"}, {"::"}})}) {
    std::string warning;
    const auto entry = choose_gid(table, {}, &warning);
    ASSERT_FALSE(entry);
    EXPECT_EQ(entry.error().status, Status::kConfig);
    EXPECT_THAT(entry.error().what, HasSubstr("GID table is empty"));
  }
}

TEST(VerbsGid, TypesAreWhatTheKernelCallsThem) {
  EXPECT_EQ(gid_type_of("RoCE v2"), GidType::kRoceV2);
  EXPECT_EQ(gid_type_of("IB/RoCE v1"), GidType::kRoceV1);
  EXPECT_EQ(gid_type_of(""), GidType::kUnknown);
  EXPECT_EQ(gid_type_of("RoCE v3"), GidType::kUnknown);
}

TEST(VerbsGid, IsWrittenAsAnAddress) {
  EXPECT_EQ(to_string(gid_of("::ffff:10.0.0.1")), "::ffff:10.0.0.1");
  EXPECT_EQ(to_string(gid_of("fe80:0::00a1")), "fe80::a1");
  EXPECT_TRUE(is_ipv4(gid_of("::ffff:10.0.0.1")));
  EXPECT_FALSE(is_ipv4(gid_of("::10.0.0.1")));
}

}  // namespace
}  // namespace slime::verbs
