// The owner of a descriptor, and what a forked child has of it.
#include "base/fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "test/unit/forked.h"

namespace slime {
namespace {

using test::in_child;

int open_null() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

TEST(Fd, OwnsItsDescriptor) {
  int raw = -1;
  {
    Fd first(open_null());
    raw = first.get();
    ASSERT_TRUE(first);
    Fd second(std::move(first));
    EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): what a moved-from Fd holds
    EXPECT_EQ(second.get(), raw);
    Fd third;
    third = std::move(second);
    EXPECT_TRUE(is_open(raw));
  }
  EXPECT_FALSE(is_open(raw));
}

TEST(Fd, ReleaseKeepsItOpen) {
  int raw = -1;
  {
    Fd fd(open_null());
    raw = fd.release();
    EXPECT_FALSE(fd);
  }
  EXPECT_TRUE(is_open(raw));
  EXPECT_TRUE(in_child([&] { return is_open(raw); })) << "it is not ours any more";
  close(raw);
}

TEST(Fd, AForkedChildHasNoCopy) {
  Fd fd(open_null());
  const int raw = fd.get();
  EXPECT_TRUE(in_child([&] { return !is_open(raw) && !fd; }));
  EXPECT_TRUE(is_open(raw));
  EXPECT_EQ(fd.get(), raw);
}

// The child has a file of its own under the number that the copied Fd had.
TEST(Fd, AForkedChildsCopyLeavesTheNumberAlone) {
  Fd fd(open_null());
  const int raw = fd.get();
  EXPECT_TRUE(in_child([&] {
    Fd own(open_null());
    if (own.get() != raw && dup2(own.get(), raw) != raw) return false;
    fd.reset();
    fd = Fd();
    return is_open(raw) && own;
  }));
}

TEST(Fd, AChildOfAChildHasNoCopyEither) {
  EXPECT_TRUE(in_child([] {
    Fd fd(open_null());
    const int raw = fd.get();
    return fd && in_child([&] { return !is_open(raw) && !fd; }) && is_open(raw);
  }));
}

TEST(Fd, ASharedOneStaysOpenInAChild) {
  Fd fd(open_null());
  fd.share_with_children();
  const int raw = fd.get();
  EXPECT_TRUE(in_child([&] { return is_open(raw) && fd.get() == raw; }));
  fd.reset();
  EXPECT_FALSE(is_open(raw));
}

// In another word of the table.
TEST(Fd, LargeNumbersCount) {
  Fd small(open_null());
  Fd large(fcntl(small.get(), F_DUPFD_CLOEXEC, 900));
  ASSERT_TRUE(large) << "ulimit -n";
  const int raw = large.get();
  EXPECT_TRUE(in_child([&] { return !is_open(raw); }));
}

}  // namespace
}  // namespace slime
