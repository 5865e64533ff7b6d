// What is said of ranks that keep an operation waiting, and when.
#include "collnet/comm/late_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "settings/times.h"

namespace slime {
namespace {

using times::kMillisecond;
using times::kSecond;

std::vector<std::pair<log::Level, std::string>> lines;
void keep(log::Level level, const char*, int, const char* text) { lines.emplace_back(level, text); }

class LateRanksTest : public ::testing::Test {
 protected:
  LateRanksTest() {
    lines.clear();
    log::set_sink(keep);
  }
  ~LateRanksTest() override { log::set_sink(nullptr); }

  static size_t count(log::Level level) {
    return static_cast<size_t>(
        std::ranges::count(lines, level, &std::pair<log::Level, std::string>::first));
  }
  void miss(const std::string& ranks) { late_.miss(ranks, 300 * kMillisecond, now_ns_); }
  // So long, with a look every 20 ms.
  void pass(uint64_t ns, bool results_come = false) {
    for (uint64_t end = now_ns_ + ns; now_ns_ < end; now_ns_ += 20 * kMillisecond) {
      late_.look(results_come, now_ns_);
    }
  }

  LateRanks late_{"comm"};
  uint64_t now_ns_ = 100 * kSecond;
};

TEST_F(LateRanksTest, ARankThatIsLateOftenIsCountedAndIsNoWarning) {
  for (int i = 0; i < 10; ++i) {
    miss("1");
    pass(5 * kSecond, true);
  }
  EXPECT_EQ(count(log::Level::kInfo), 10u);
  EXPECT_EQ(count(log::Level::kWarn), 0u);
  EXPECT_NE(lines.back().second.find("rank 1 has not contributed for 300 ms (wait 10 "),
            std::string::npos)
      << lines.back().second;
}

TEST_F(LateRanksTest, ARankThatIsLateInEachOperationIsALineInAWhile) {
  for (int i = 0; i < 20; ++i) {
    miss("3");
    pass(kSecond / 2, true);
  }
  EXPECT_EQ(count(log::Level::kInfo), 3u);
  EXPECT_NE(lines.back().second.find("(wait 17 "), std::string::npos) << lines.back().second;
}

TEST_F(LateRanksTest, OneThatStaysAwayIsOneWarning) {
  pass(kSecond, true);
  miss("1, 4-7");
  pass(9 * kSecond);
  EXPECT_EQ(count(log::Level::kWarn), 0u);
  pass(60 * kSecond);
  ASSERT_EQ(count(log::Level::kWarn), 1u);
  EXPECT_NE(lines.back().second.find("comm: rank 1, 4-7 has not contributed for 10 s"),
            std::string::npos)
      << lines.back().second;
  pass(kSecond, true);
  miss("1, 4-7");
  pass(60 * kSecond);
  EXPECT_EQ(count(log::Level::kWarn), 2u) << "another time";
}

TEST_F(LateRanksTest, SeveralSwitchesAreOneLineInAWhile) {
  miss("1");
  miss("2");
  pass(3 * kSecond);
  miss("1");
  EXPECT_EQ(count(log::Level::kInfo), 1u);
  pass(2 * kSecond);
  miss("2");
  ASSERT_EQ(count(log::Level::kInfo), 2u);
  EXPECT_NE(lines.back().second.find("rank 2 has not contributed for 5300 ms (wait 1 "),
            std::string::npos)
      << lines.back().second;
}

}  // namespace
}  // namespace slime
