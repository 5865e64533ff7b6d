#include "test/boundary/support/two_nics.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "base/clock.h"
#include "base/interfaces/carrier.h"
#include "test/support/temporary_directory.h"
#include "test/support/test_buffer.h"

namespace slime::boundary {
namespace {

namespace fs = std::filesystem;

constexpr int kCannot = 77;
constexpr const char* kNames[] = {"one0", "one1"};
constexpr const char* kMakeNics =
    "PATH=$PATH:/usr/sbin:/sbin; ip link set lo up && ip link add one0 type veth peer name one1 && "
    "ip addr add 198.18.0.1/24 dev one0 && ip addr add 198.19.0.1/24 dev one1 && "
    "ip link set one0 up && ip link set one1 up";

// As /sys/class/net shows NICs with functions of their own.
void describe_functions(const fs::path& root) {
  for (const std::string name : kNames) {
    const fs::path function = root / ("0000:05:00." + name.substr(3)), net = root / "net" / name;
    fs::create_directories(function);
    fs::create_directories(net);
    std::ofstream(function / "numa_node") << "0\n";
    std::ofstream(net / "ifindex") << if_nametoindex(name.c_str()) << "\n";
    fs::create_symlink(function, net / "device");
  }
}

// Of the calling process alone. An ordinary user may where the kernel gives out user namespaces,
// and is root there, so that the commands below may, too.
bool enter_spaces() {
  constexpr int kSpaces = CLONE_NEWNS | CLONE_NEWNET;
  if (unshare(kSpaces) == 0) return true;
  const std::string map = "0 " + std::to_string(getuid()) + " 1";
  if (unshare(CLONE_NEWUSER | kSpaces) != 0) return false;
  return bool(std::ofstream("/proc/self/uid_map") << map << std::flush);
}

// The kernel says that a link has a carrier some time after both of its ends are up.
bool make_nics(const fs::path& root, NicKind kind) {
  if (std::system(kMakeNics) != 0) return false;
  for (const std::string name : kNames) {
    CarrierSense sense(name);
    const auto is_up = [&] { return sense.look(steady_now_ns()) == Carrier::kUp; };
    EXPECT_TRUE(test::eventually(is_up)) << name << " gets no carrier";
  }
  if (kind == NicKind::kVirtual) return true;
  describe_functions(root);
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount((root / "net").c_str(), "/sys/class/net", nullptr, MS_BIND, nullptr) == 0;
}

}  // namespace

void on_two_nics(NicKind kind, const std::function<void()>& body) {
  const test::TemporaryDirectory directory;
  const pid_t child = fork();
  if (child == 0) {
    if (!enter_spaces()) _exit(kCannot);
    EXPECT_TRUE(make_nics(directory.path(), kind)) << "see above; ip is of the package iproute2";
    if (!testing::Test::HasFailure()) body();
    fflush(stdout);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kCannot) {
    GTEST_SKIP() << "no network and mount namespaces can be made here";
  }
  EXPECT_EQ(status, 0) << "the checks in the child process have failed; see above";
}

}  // namespace slime::boundary
