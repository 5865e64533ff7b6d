#include "test/boundary/support/pci_loopback.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/support/temporary_directory.h"

namespace slime::boundary {
namespace {

namespace fs = std::filesystem;

constexpr int kCannot = 77;

// Of the calling process alone. An ordinary user may where the kernel gives out user namespaces.
bool cover_interfaces(const fs::path& root) {
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount((root / "net").c_str(), "/sys/class/net", nullptr, MS_BIND, nullptr) == 0;
}

}  // namespace

void on_pci_loopback(const std::function<void()>& body) {
  const test::TemporaryDirectory directory;
  const fs::path& root = directory.path();
  fs::create_directories(root / "0000:05:00.0");
  fs::create_directories(root / "net/lo");
  fs::create_symlink(root / "0000:05:00.0", root / "net/lo/device");
  const pid_t child = fork();
  if (child == 0) {
    if (!cover_interfaces(root)) _exit(kCannot);
    body();
    fflush(stdout);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kCannot) {
    GTEST_SKIP() << "no mount namespace can be made here";
  }
  EXPECT_EQ(status, 0) << "the checks in the child process have failed; see above";
}

}  // namespace slime::boundary
