// The table of NCCL's loading rules.
#include "tools/common/nccl_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slime::tools {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const NcclRules& rules_for(const std::string& version) {
  return rules_of(parse_nccl_version(version).value());
}

TEST(NcclRules, RowsFollowEachOtherWithoutGapsOrOverlaps) {
  const auto rows = nccl_rules();
  for (size_t i = 1; i < rows.size(); ++i) {
    const NcclVersion& end = rows[i - 1].last;
    const NcclVersion& next = rows[i].first;
    const bool same_series = next == NcclVersion{end.major, end.minor, end.patch + 1};
    const bool next_series =
        end.patch == kLastPatch && next == NcclVersion{end.major, end.minor + 1, 0};
    EXPECT_TRUE(same_series || next_series) << to_string(end) << ", then " << to_string(next);
  }
  EXPECT_LE(kNewestKnown, rows.back().last);
  EXPECT_GE(kNewestKnown, rows.back().first);
}

TEST(NcclRules, EveryReleaseHasItsRow) {
  for (const NcclRules& row : nccl_rules()) {
    EXPECT_EQ(&rules_of(row.first), &row);
    EXPECT_EQ(&rules_of(row.last), &row);
  }
  EXPECT_EQ(&rules_of({1, 9, 9}), &nccl_rules().front());
  EXPECT_EQ(&rules_of({2, 99, 1}), &nccl_rules().back());
}

TEST(NcclRules, NamesGivenToDlopen) {
  using Names = std::vector<std::string>;
  const auto names = [](const char* version, const char* entry) {
    return dlopen_names(rules_for(version), entry);
  };
  EXPECT_EQ(names("2.20.5", "x"), Names{"libnccl-net-x.so"});
  EXPECT_EQ(names("2.21.5", "libx.so"), (Names{"libx.so", "libnccl-net-libx.so.so"}));
  EXPECT_EQ(names("2.27.3", "libx.so"), Names{"libx.so"});
  EXPECT_EQ(names("2.27.3", "lib.so"), Names{"libnccl-net-lib.so.so"});
  EXPECT_EQ(names("2.27.3", "/opt/x.so"), Names{"libnccl-net-/opt/x.so.so"});
  EXPECT_EQ(names("2.27.4", "/opt/x.so"), Names{"/opt/x.so"});
  EXPECT_EQ(names("2.30.7", "x"), (Names{"x", "libnccl-net-x.so"}));
  EXPECT_EQ(names("2.30.7", "x.so"), (Names{"x.so", "libnccl-net-x.so.so"}));
  EXPECT_EQ(names("2.30.7", ""), Names{"libnccl-net.so"});
  EXPECT_EQ(names("2.22.3", "stat"), (Names{"", "libnccl-net-stat.so"}));
  EXPECT_EQ(names("2.21.5", "stat"), (Names{"stat", "libnccl-net-stat.so"}));
  EXPECT_EQ(names("2.18.6", std::string(200, 'y').c_str())[0].size(), 127u);
  EXPECT_EQ(names("2.30.7", std::string(300, 'y').c_str())[0].size(), 254u);
}

TEST(NcclRules, PathsAndFileNames) {
  EXPECT_FALSE(takes_entry(rules_for("2.20.5"), "libnet-slime.so"));
  EXPECT_FALSE(takes_entry(rules_for("2.20.5"), "/opt/libnet-slime.so"));
  EXPECT_TRUE(takes_entry(rules_for("2.20.5"), "slime"));
  EXPECT_TRUE(takes_entry(rules_for("2.27.3"), "libnet-slime.so"));
  EXPECT_FALSE(takes_entry(rules_for("2.27.3"), "/opt/libnet-slime.so"));
  EXPECT_TRUE(takes_entry(rules_for("2.27.3"), "lib/libnet-slime.so"));
  EXPECT_FALSE(takes_entry(rules_for("2.27.3"), "lib.so"));
  EXPECT_TRUE(takes_entry(rules_for("2.27.4"), "/opt/libnet-slime.so"));
}

TEST(NcclRules, EntriesOfTheVariable) {
  EXPECT_THAT(entries_of(rules_for("2.28.9"), std::nullopt).names, ElementsAre(""));
  EXPECT_THAT(entries_of(rules_for("2.26.2"), "").names, ElementsAre(""));
  EXPECT_THAT(entries_of(rules_for("2.28.9"), "").names, IsEmpty());
  EXPECT_THAT(entries_of(rules_for("2.28.9"), "NONE").names, IsEmpty());
  EXPECT_THAT(entries_of(rules_for("2.27.7"), "none").names, ElementsAre("none"));
  EXPECT_THAT(entries_of(rules_for("2.26.2"), "a,b").names, ElementsAre("a,b"));
  EXPECT_THAT(entries_of(rules_for("2.27.7"), ",a,,b").names, ElementsAre("a", "b"));
  EXPECT_TRUE(means_no_plugin(rules_for("2.30.7"), "None"));
  EXPECT_FALSE(means_no_plugin(rules_for("2.27.7"), "none"));
  EXPECT_EQ(entries_of(rules_for("2.27.7"), std::string(255, 'y')).ignored.size(), 1u);
}

TEST(NcclRules, ForgottenNames) {
  EXPECT_FALSE(rules_for("2.26.2").forgets_name(0));
  EXPECT_FALSE(rules_for("2.27.7").forgets_name({}));
  EXPECT_TRUE(rules_for("2.27.7").forgets_name(0));
  EXPECT_TRUE(rules_for("2.29.7").forgets_name({}));
  EXPECT_FALSE(rules_for("2.29.7").forgets_name(1));
  EXPECT_FALSE(rules_for("2.30.7").forgets_name(0));
}

TEST(NcclRules, VersionsAsText) {
  EXPECT_EQ(parse_nccl_version("2.20.5").value(), (NcclVersion{2, 20, 5}));
  EXPECT_EQ(to_string(parse_nccl_version("2.27").value()), "2.27");
  for (const char* text : {"", "2", "2.", "2.x", "2.20.", "2.20.5.1", "2.1000", "-2.1", "3.1"}) {
    EXPECT_FALSE(parse_nccl_version(text)) << text;
  }
  EXPECT_EQ(version_from_code(2708), (NcclVersion{2, 7, 8}));
  EXPECT_EQ(version_from_code(22809), (NcclVersion{2, 28, 9}));
}

}  // namespace
}  // namespace slime::tools
