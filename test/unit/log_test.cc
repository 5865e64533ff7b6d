#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"

namespace slime {
namespace {

struct Line {
  log::Level level;
  std::string file;
  int line;
  std::string text;
};
std::vector<Line> g_lines;

void keep(log::Level level, const char* file, int line, const char* text) {
  g_lines.push_back({level, file, line, text});
  errno = EDOM;  // a sink may do anything to errno
}

class Log : public testing::Test {
 protected:
  void SetUp() override {
    g_lines.clear();
    log::set_sink(keep);
  }
  void TearDown() override { log::set_sink(nullptr); }
};

TEST_F(Log, SilentWithoutASink) {
  log::set_sink(nullptr);
  EXPECT_FALSE(log::enabled());
  SLIME_WARN("nobody listens");
  EXPECT_TRUE(g_lines.empty());
  log::set_sink(keep);
  EXPECT_TRUE(log::enabled());
  EXPECT_TRUE(g_lines.empty());
}

TEST_F(Log, PassesLevelPlaceAndText) {
  SLIME_WARN("rail %d of %s", 3, "eth0");
  const int line = __LINE__ - 1;
  SLIME_INFO("info");
  SLIME_TRACE("trace");
  ASSERT_EQ(g_lines.size(), 3u);
  EXPECT_EQ(g_lines[0].level, log::Level::kWarn);
  EXPECT_EQ(g_lines[0].line, line);
  EXPECT_THAT(g_lines[0].file, testing::EndsWith("log_test.cc"));
  EXPECT_EQ(g_lines[0].text, "rail 3 of eth0");
  EXPECT_EQ(g_lines[1].level, log::Level::kInfo);
  EXPECT_EQ(g_lines[2].level, log::Level::kTrace);
}

TEST_F(Log, KeepsErrno) {
  errno = ECONNRESET;
  SLIME_WARN("between a call and its errno");
  EXPECT_EQ(errno, ECONNRESET);
}

TEST_F(Log, MarksWhereALongLineWasCut) {
  // The longest line that fits is whole; one byte more is cut and says so.
  const std::string fits(895, 'x');
  SLIME_INFO("%s", fits.c_str());
  SLIME_INFO("%s", (fits + "y").c_str());
  SLIME_INFO("%s", std::string(100000, 'z').c_str());
  ASSERT_EQ(g_lines.size(), 3u);
  EXPECT_EQ(g_lines[0].text, fits);
  for (int i : {1, 2}) {
    EXPECT_EQ(g_lines[i].text.size(), 895u);
    EXPECT_THAT(g_lines[i].text, testing::EndsWith(" [cut]"));
  }
}

TEST_F(Log, OneLineStaysOneLine) {
  SLIME_INFO("peer says \"%s\"\n", "a\nNCCL WARN forged\r\t\x1b[31m\x7f");
  ASSERT_EQ(g_lines.size(), 1u);
  EXPECT_EQ(g_lines[0].text, "peer says \"a NCCL WARN forged   [31m \"");
  SLIME_INFO("%s", "");
  EXPECT_EQ(g_lines[1].text, "");
}

std::atomic<int> g_count{0};
void count(log::Level, const char*, int, const char* text) {
  if (strcmp(text, "from a thread 7") == 0) ++g_count;
}

TEST(LogThreads, SinkMayChangeWhileOthersWrite) {
  constexpr int kThreads = 4, kLines = 2000;
  g_count = 0;
  std::vector<std::thread> writers;
  writers.reserve(kThreads);
  log::set_sink(count);
  for (int t = 0; t < kThreads; ++t) {
    writers.emplace_back([] {
      for (int i = 0; i < kLines; ++i) SLIME_INFO("from a thread %d", 7);
    });
  }
  for (int i = 0; i < 1000; ++i) log::set_sink(i % 2 == 0 ? nullptr : count);
  for (auto& writer : writers) writer.join();
  log::set_sink(count);
  SLIME_INFO("from a thread %d", 7);
  log::set_sink(nullptr);
  EXPECT_GE(g_count, 1);
  EXPECT_LE(g_count, kThreads * kLines + 1);
}

}  // namespace
}  // namespace slime
