#include "tools/common/bytes.h"

#include <gtest/gtest.h>

namespace slime::tools {
namespace {

TEST(BytesTest, ReadsWhatPeopleWrite) {
  const std::pair<const char*, uint64_t> cases[] = {{"0", 0},           {"8", 8},
                                                    {"64K", 64 << 10},  {"64k", 64 << 10},
                                                    {"1.5M", 3 << 19},  {"2GiB", 2ull << 30},
                                                    {"1T", 1ull << 40}, {"100B", 100},
                                                    {"4KB", 4 << 10},   {"7ib", 0}};
  for (const auto& [text, bytes] : cases) {
    const auto parsed = parse_bytes(text);
    if (std::string_view(text) == "7ib") {
      EXPECT_FALSE(parsed) << text;
    } else {
      ASSERT_TRUE(parsed) << text;
      EXPECT_EQ(*parsed, bytes) << text;
    }
  }
}

TEST(BytesTest, RefusesTheRest) {
  for (const char* text : {"", "K", "-1", "1X", "1KiBs", "nan", "inf", "1e30", "64 K", "0x10"}) {
    const auto parsed = parse_bytes(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().what.find(std::string("'") + text + "'"), std::string::npos);
  }
}

TEST(BytesTest, WritesThemBack) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(64 << 10), "64 KiB");
  EXPECT_EQ(format_bytes(3 << 19), "1.50 MiB");
  EXPECT_EQ(format_bytes(5ull << 40), "5 TiB");
}

}  // namespace
}  // namespace slime::tools
