// What NCCL_SLIME_STATS may name: a file that is replaced, a FIFO or a device that is written into,
// and symbolic links to one's own files.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/net/socket.h"
#include "plugin/stats.h"

namespace slime::boundary {
namespace {

using plugin::write_stats;
namespace fs = std::filesystem;

constexpr uid_t kSomebodyElse = 54321;

class StatsTarget : public testing::Test {
 protected:
  StatsTarget() {
    std::string name = fs::temp_directory_path() / "slime-XXXXXX";
    folder_ = mkdtemp(name.data());
    path_ = folder_ / "stats.json";
  }
  ~StatsTarget() override { fs::remove_all(folder_); }

  static std::string content_of(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  long entries() const {
    const fs::directory_iterator all(folder_);
    return std::distance(begin(all), end(all));
  }
  // It is refused with these words.
  void refuses(const std::string& words) const {
    const auto written = write_stats(path_, "new");
    ASSERT_FALSE(written) << words;
    EXPECT_NE(written.error().what.find(words), std::string::npos) << written.error().what;
    EXPECT_NE(written.error().what.find("NCCL_SLIME_STATS"), std::string::npos)
        << written.error().what;
  }
  static std::string read_some(int fd) {
    char buffer[256];
    const ssize_t bytes = read(fd, buffer, sizeof buffer);
    return {buffer, static_cast<size_t>(std::max<ssize_t>(bytes, 0))};
  }

  fs::path folder_, path_;
};

TEST_F(StatsTarget, ReplacesAnOlderOneAndLeavesNothingBeside) {
  ASSERT_TRUE(write_stats(path_, "old"));
  ASSERT_TRUE(write_stats(path_, "new"));
  EXPECT_EQ(content_of(path_), "new");
  EXPECT_EQ(entries(), 1);
  const auto failed = write_stats(folder_ / "missing" / "stats.json", "x");
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().what.find("NCCL_SLIME_STATS"), std::string::npos);
}

TEST_F(StatsTarget, WhatLiesWhereTheTemporaryFileGoesIsNotWrittenInto) {
  const std::string temporary = path_.string() + ".tmp." + std::to_string(getpid());
  ASSERT_EQ(mkfifo(temporary.c_str(), 0600), 0);
  ASSERT_TRUE(write_stats(path_, "new"));
  EXPECT_EQ(content_of(path_), "new");
  EXPECT_EQ(entries(), 1);
}

TEST_F(StatsTarget, WritesIntoADevice) {
  const Fd terminal(posix_openpt(O_RDWR | O_NOCTTY));
  ASSERT_TRUE(terminal && grantpt(terminal.get()) == 0 && unlockpt(terminal.get()) == 0);
  const std::string device = ptsname(terminal.get());
  ASSERT_TRUE(write_stats(device, "new"));
  EXPECT_EQ(read_some(terminal.get()), "new");
}

TEST_F(StatsTarget, ADeviceStaysOne) {
  struct stat null {};
  ASSERT_EQ(stat("/dev/null", &null), 0);
  if (mknod(path_.c_str(), S_IFCHR | 0600, null.st_rdev) != 0) {
    GTEST_SKIP() << "this process may make no device";
  }
  const Result<void> written = write_stats(path_, "new");
  EXPECT_TRUE(fs::is_character_file(path_));
  // Where devices of a temporary directory are disabled, with the reason.
  EXPECT_TRUE(written || written.error().what.find("cannot open") != std::string::npos);
  EXPECT_EQ(entries(), 1);
}

TEST_F(StatsTarget, WritesIntoAFifo) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const Fd reader(open(path_.c_str(), O_RDONLY | O_NONBLOCK));
  ASSERT_TRUE(write_stats(path_, "new"));
  EXPECT_EQ(read_some(reader.get()), "new");
  EXPECT_TRUE(fs::is_fifo(path_));
  EXPECT_EQ(entries(), 1);
}

TEST_F(StatsTarget, AFifoThatNobodyReadsIsAnErrorAndNoHang) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  refuses("nobody reads");
  EXPECT_TRUE(fs::is_fifo(path_));
}

TEST_F(StatsTarget, AFifoWhoseReaderSleepsIsAnErrorAndNoHang) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const Fd reader(open(path_.c_str(), O_RDONLY | O_NONBLOCK));
  const auto written = write_stats(path_, std::string(1 << 20, 'x'));
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().what.find("does not read"), std::string::npos) << written.error().what;
}

TEST_F(StatsTarget, FollowsALinkToAnOwnFile) {
  fs::create_directory(folder_ / "elsewhere");
  std::ofstream(folder_ / "elsewhere" / "target") << "old";
  fs::create_symlink("elsewhere/target", path_);
  ASSERT_TRUE(write_stats(path_, "new"));
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_EQ(content_of(folder_ / "elsewhere" / "target"), "new");
}

TEST_F(StatsTarget, RefusesALinkToAFileOfSomebodyElse) {
  std::ofstream(folder_ / "target") << "old";
  if (chown((folder_ / "target").c_str(), kSomebodyElse, 0) != 0) {
    GTEST_SKIP() << "only root may give a file to another user";
  }
  fs::create_symlink("target", path_);
  refuses("belongs to user 54321");
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_EQ(content_of(folder_ / "target"), "old");
}

TEST_F(StatsTarget, RefusesALinkThatSomebodyElseHasMade) {
  std::ofstream(folder_ / "target") << "old";
  fs::create_symlink("target", path_);
  if (lchown(path_.c_str(), kSomebodyElse, 0) != 0) {
    GTEST_SKIP() << "only root may give a link to another user";
  }
  refuses("user 54321 made this symbolic link");
  EXPECT_EQ(content_of(folder_ / "target"), "old");
}

TEST_F(StatsTarget, RefusesALinkWhereOthersMayWrite) {
  std::ofstream(folder_ / "target") << "old";
  fs::create_directory(folder_ / "shared");
  ASSERT_EQ(chmod((folder_ / "shared").c_str(), 01777), 0);
  path_ = folder_ / "shared" / "stats.json";
  fs::create_symlink("../target", path_);
  refuses("others may write to");
  EXPECT_EQ(content_of(folder_ / "target"), "old");
}

TEST_F(StatsTarget, RefusesALinkToWhereOthersMayWrite) {
  fs::create_directory(folder_ / "shared");
  ASSERT_EQ(chmod((folder_ / "shared").c_str(), 01777), 0);
  std::ofstream(folder_ / "shared" / "target") << "old";
  fs::create_symlink("shared/target", path_);
  refuses("others may write to");
  EXPECT_EQ(content_of(folder_ / "shared" / "target"), "old");
}

TEST_F(StatsTarget, RefusesALinkToNothingAndADirectory) {
  fs::create_symlink("missing", path_);
  refuses("names nothing");
  EXPECT_TRUE(fs::is_symlink(path_));
  fs::remove(path_);
  fs::create_directory(path_);
  refuses("is a directory");
}

TEST_F(StatsTarget, WritesAFileWithoutANameInPlace) {
  const Fd file(memfd_create("stats", MFD_CLOEXEC));
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  ASSERT_TRUE(write_stats(path, "a longer one"));
  ASSERT_TRUE(write_stats(path, "new"));
  EXPECT_EQ(content_of(path), "new");
}

// As a shell's >file: what else goes there is kept.
TEST_F(StatsTarget, StandardOutputInAFileIsAddedTo) {
  std::ofstream(path_) << "output\n";
  const Fd before(dup(STDOUT_FILENO));
  const Fd file(open(path_.c_str(), O_WRONLY | O_APPEND));
  fflush(stdout);
  ASSERT_EQ(dup2(file.get(), STDOUT_FILENO), STDOUT_FILENO);
  const auto written = write_stats("/proc/self/fd/1", "new");
  ASSERT_EQ(dup2(before.get(), STDOUT_FILENO), STDOUT_FILENO);
  ASSERT_TRUE(written) << written.error().what;
  EXPECT_EQ(content_of(path_), "output\nnew");
  EXPECT_EQ(entries(), 1);
}

}  // namespace
}  // namespace slime::boundary
