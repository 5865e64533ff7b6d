// The file that says where CollNet was measured to win: what is accepted, and what is refused.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <random>

#include "plugin/tuner_file.h"

namespace slime::plugin {
namespace {

using testing::HasSubstr;

constexpr char kHead[] = "slime-tuner 1\n";

std::string refusal(const std::string& text) {
  const auto file = TunerFile::parse(text);
  return file ? "accepted" : file.error().what;
}

TunerFile file_of(const std::string& lines) { return TunerFile::parse(kHead + lines).value(); }

TEST(TunerFile, SaysWhatWasMeasured) {
  const TunerFile file = file_of(
      "# by hand\n\n\tprefer  65536 1048576 4 4 \navoid 0 1023 4 4\n"
      "prefer 1024 1024 4 4\nprefer 0 4611686018427387904 1048576 2");
  const TunerAdvice advice = file.advice_for(4, 4);
  ASSERT_EQ(advice.rules.size(), 3u);
  EXPECT_EQ(advice.on(0), Verdict::kAvoid);
  EXPECT_EQ(advice.on(1023), Verdict::kAvoid);
  EXPECT_EQ(advice.on(1024), Verdict::kPrefer);
  EXPECT_EQ(advice.on(1025), Verdict::kUnknown);
  EXPECT_EQ(advice.on(65535), Verdict::kUnknown);
  EXPECT_EQ(advice.on(65536), Verdict::kPrefer);
  EXPECT_EQ(advice.on(1048576), Verdict::kPrefer);
  EXPECT_EQ(advice.on(1048577), Verdict::kUnknown);
  EXPECT_EQ(advice.on(UINT64_MAX), Verdict::kUnknown);
  EXPECT_TRUE(file.advice_for(4, 2).empty());
  EXPECT_EQ(file.advice_for(1048576, 2).rules.size(), 1u);
  EXPECT_EQ(TunerAdvice().on(5), Verdict::kUnknown);
}

TEST(TunerFile, MaySpeakOfTheRest) {
  const TunerFile file = file_of("otherwise  avoid\nprefer 10 20 4 4\n");
  EXPECT_EQ(file.advice_for(4, 4).on(9), Verdict::kAvoid);
  EXPECT_EQ(file.advice_for(4, 4).on(20), Verdict::kPrefer);
  EXPECT_EQ(file.advice_for(4, 4).on(21), Verdict::kAvoid);
  EXPECT_EQ(file.advice_for(3, 3).on(15), Verdict::kAvoid);
  EXPECT_FALSE(file.advice_for(3, 3).empty());
  EXPECT_NE(file.digest(), file_of("prefer 10 20 4 4\n").digest());
  EXPECT_THAT(refusal(std::string(kHead) + "otherwise avoid\notherwise avoid\n"),
              HasSubstr("line 3, \"otherwise avoid\": it was said before"));
}

TEST(TunerFile, MayHaveNothingToSay) {
  EXPECT_TRUE(file_of("").advice_for(2, 2).empty());
  EXPECT_NE(file_of("").digest(), 0u);
  EXPECT_EQ(refusal("slime-tuner 1"), "accepted") << "without a newline";
}

TEST(TunerFile, RefusesWhatItDoesNotUnderstand) {
  EXPECT_THAT(refusal(""), HasSubstr("it is empty"));
  for (const char* head : {"\n", "slime-tuner 2\n", "slime-tuner 1 \n", "prefer 1 2 4 4\n",
                           "Slime-tuner 1\n", "# slime-tuner 1\n"}) {
    EXPECT_THAT(refusal(head), HasSubstr("line 1, ")) << head;
    EXPECT_THAT(refusal(head), HasSubstr("begins with slime-tuner 1")) << head;
  }
  for (const char* line : {"prefer",
                           "prefer 1 2 4",
                           "prefer 1 2 4 4 5",
                           "Prefer 1 2 4 4",
                           "use 1 2 4 4",
                           "prefer -1 2 4 4",
                           "prefer +1 2 4 4",
                           "prefer 0x1 2 4 4",
                           "prefer 1K 2K 4 4",
                           "prefer 1.0 2 4 4",
                           "prefer 2 1 4 4",
                           "prefer 1 4611686018427387905 4 4",
                           "prefer 1 18446744073709551616 4 4",
                           "prefer 1 2 1 1",
                           "prefer 1 2 4 1",
                           "prefer 1 2 4 5",
                           "prefer 1 2 1048577 2",
                           "prefer 1 2 4 4 # why",
                           "otherwise prefer",
                           "otherwise",
                           "otherwise avoid 4",
                           "1 2 4 4"}) {
    EXPECT_THAT(refusal(std::string(kHead) + "# fine\n" + line + "\n"),
                HasSubstr(std::string("line 3, \"") + line + "\": expected \"prefer\""))
        << line;
  }
  for (const std::string& bad :
       {std::string("prefer 1 2 4 4\r"), std::string("pre\0fer", 7), std::string("# caf\xc3\xa9"),
        std::string("\x7f"), std::string("\x1b[2J")}) {
    EXPECT_THAT(refusal(kHead + bad + "\n"), HasSubstr("only printable ASCII"));
    for (const char c : refusal(kHead + bad + "\n")) EXPECT_TRUE(c >= ' ' && c <= '~');
  }
  EXPECT_THAT(refusal(kHead + std::string(201, '#') + "\n"), HasSubstr("200 characters"));
  EXPECT_EQ(refusal(kHead + std::string(200, '#') + "\n"), "accepted");
}

TEST(TunerFile, RefusesLinesThatOverlap) {
  EXPECT_THAT(refusal(std::string(kHead) + "prefer 5 9 4 4\navoid 9 9 4 4\n"),
              HasSubstr("two lines speak of 9 bytes with 4 ranks on 4 nodes"));
  EXPECT_THAT(refusal(std::string(kHead) + "prefer 7 8 4 4\nprefer 5 90 4 4\n"),
              HasSubstr("two lines speak of 7 bytes"));
  EXPECT_THAT(refusal(std::string(kHead) + "prefer 5 9 4 4\nprefer 5 9 4 4\n"),
              HasSubstr("two lines"));
  EXPECT_EQ(refusal(std::string(kHead) + "prefer 5 9 4 4\navoid 5 9 4 2\n"), "accepted");
  EXPECT_EQ(refusal(std::string(kHead) + "prefer 5 9 4 4\navoid 10 11 4 4\n"), "accepted");
}

TEST(TunerFile, IsBounded) {
  std::string most = kHead;
  for (size_t i = 0; i < TunerFile::kMaxRules; ++i) {
    most += "avoid " + std::to_string(i) + " " + std::to_string(i) + " 2 2\n";
  }
  EXPECT_EQ(refusal(most), "accepted");
  EXPECT_THAT(refusal(most + "avoid 5000 5000 2 2\n"), HasSubstr("1024 rules are the most"));
}

TEST(TunerFile, DigestIsOfTheMeaning) {
  const uint64_t digest = file_of("avoid 0 9 4 4\nprefer 10 20 4 4\n").digest();
  EXPECT_EQ(file_of("# a word\nprefer  10 20 4 4\navoid 0 9 4 4").digest(), digest);
  for (const char* other :
       {"avoid 0 9 4 4\n", "prefer 0 9 4 4\nprefer 10 20 4 4\n",
        "avoid 0 8 4 4\nprefer 10 20 4 4\n", "avoid 1 9 4 4\nprefer 10 20 4 4",
        "avoid 0 9 4 4\nprefer 10 20 4 2\n", "avoid 0 9 4 4\navoid 10 20 5 4", ""}) {
    EXPECT_NE(file_of(other).digest(), digest) << other;
  }
}

// Bytes from nowhere: an answer, no more.
TEST(TunerFile, SurvivesAnything) {
  std::mt19937 random(20240517);
  const std::string letters = "prefavoid 0123456789\n\t#-\0\xff";
  for (int round = 0; round < 3000; ++round) {
    std::string text = round % 3 ? kHead : "";
    const size_t length = random() % 300;
    for (size_t i = 0; i < length; ++i) text += letters[random() % letters.size()];
    const auto file = TunerFile::parse(text);
    EXPECT_TRUE(file || !file.error().what.empty());
  }
}

class TunerFileOnDisk : public testing::Test {
 protected:
  ~TunerFileOnDisk() override { unlink(path_.c_str()); }
  std::string refused() const {
    const auto file = TunerFile::read(path_);
    return file ? "accepted" : file.error().what;
  }
  const std::string path_ = "/tmp/slime-tuner-file-test-" + std::to_string(getpid());
};

TEST_F(TunerFileOnDisk, IsRead) {
  std::ofstream(path_) << kHead << "prefer 1 2 3 3\n";
  const auto file = TunerFile::read(path_);
  ASSERT_TRUE(file.has_value()) << file.error().what;
  EXPECT_EQ(file->advice_for(3, 3).rules.size(), 1u);
}

// The other half of test/system/tuner_table.test.sh.
TEST(TunerTool, WritesWhatIsRead) {
  const auto file = TunerFile::read("test/system/data/tuner.conf");
  ASSERT_TRUE(file.has_value()) << file.error().what;
  EXPECT_EQ(file->advice_for(2, 2).on(2000), Verdict::kPrefer);
  const TunerAdvice advice = file->advice_for(4, 4);
  EXPECT_EQ(advice.on(65535), Verdict::kAvoid);
  EXPECT_EQ(advice.on(65536), Verdict::kPrefer);
  EXPECT_EQ(advice.on(131073), Verdict::kAvoid);
  EXPECT_EQ(advice.on(8388608), Verdict::kPrefer);
  EXPECT_EQ(advice.on(8388609), Verdict::kAvoid);
  EXPECT_EQ(file->advice_for(3, 3).on(2000), Verdict::kAvoid);
}

TEST_F(TunerFileOnDisk, IsNamedWhereItCannotBeUsed) {
  EXPECT_THAT(refused(), HasSubstr("tuner file " + path_ + ": cannot open it"));
  std::ofstream(path_) << "nonsense\n";
  EXPECT_THAT(refused(), HasSubstr("tuner file " + path_ + ": line 1, \"nonsense\""));
  std::ofstream(path_) << kHead << std::string(TunerFile::kMaxBytes, '\n');
  EXPECT_THAT(refused(), HasSubstr("longer than 65536 bytes"));
}

TEST_F(TunerFileOnDisk, IsNeverWaitedFor) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(refused(), HasSubstr("no regular file"));
  unlink(path_.c_str());
  ASSERT_EQ(mkdir(path_.c_str(), 0700), 0);
  EXPECT_THAT(refused(), HasSubstr("no regular file"));
  rmdir(path_.c_str());
  const auto endless = TunerFile::read("/dev/zero");
  ASSERT_FALSE(endless.has_value());
  EXPECT_THAT(endless.error().what, HasSubstr("no regular file"));
}

}  // namespace
}  // namespace slime::plugin
