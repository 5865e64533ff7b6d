// A peer that is killed or closed, and started again, while requests to it and to another
// peer go on. SLIME_RESTARTS=n restarts it so often.
#include <dirent.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <thread>

#include "base/clock.h"
#include "test/support/environment.h"
#include "test/support/other_process.h"

namespace slime {
namespace {

constexpr size_t kBytes = 1 << 20;
constexpr int64_t kMs = 1'000'000;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kRestarts = 30;
#else
constexpr uint64_t kRestarts = 100;
#endif

enum class Command : char { kKill, kClose };

// A process that makes others with an engine, one after the other: this one has threads later.
class Restarter {
 public:
  explicit Restarter(size_t address_bytes) : address(address_bytes) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    (void)std::fflush(nullptr);  // or both print what is in the buffers
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      serve(ends[1]);
    }
    ::close(ends[1]);
    socket_ = ends[0];
    receive();
  }
  ~Restarter() {
    ::close(socket_);
    ::waitpid(pid_, nullptr, 0);
  }
  Restarter(const Restarter&) = delete;
  Restarter& operator=(const Restarter&) = delete;

  // Ends the one that is there, so.
  void begin_restart(Command command) { EXPECT_EQ(::write(socket_, &command, 1), 1); }
  // Of the next one.
  void receive() {
    for (auto* blob : {&address, &region}) {
      pollfd one = {socket_, POLLIN, 0};
      ASSERT_EQ(::poll(&one, 1, 60'000), 1) << "the other process makes no engine";
      EXPECT_EQ(::read(socket_, blob->data(), blob->size()), static_cast<ssize_t>(blob->size()));
    }
  }

  std::vector<char> address, region = std::vector<char>(SLIME_REGION_BYTES);

 private:
  [[noreturn]] static void serve(int socket) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
      int ends[2];
      if (::pipe(ends) != 0) ::_exit(1);
      const pid_t child = ::fork();
      if (child == 0) be_engine(socket, ends[0], ends[1]);
      ::close(ends[0]);
      Command command = Command::kKill;
      const bool goes_on = ::read(socket, &command, 1) == 1;
      if (!goes_on || command == Command::kKill) ::kill(child, SIGKILL);
      ::close(ends[1]);  // else it closes its engine now
      ::waitpid(child, nullptr, 0);
      if (!goes_on) ::_exit(0);
    }
  }
  [[noreturn]] static void be_engine(int socket, int until, int to_close) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(to_close);
    std::vector<char> memory(kBytes, 'x');
    {
      TestEngine engine;
      for (const auto& blob : {engine.address(), engine.blob_of(engine.add(memory))}) {
        (void)!::write(socket, blob.data(), blob.size());
      }
      char end = 0;
      (void)!::read(until, &end, 1);
    }
    ::_exit(0);
  }

  int socket_ = -1;
  pid_t pid_ = -1;
};

size_t open_files() {
  DIR* const files = ::opendir("/proc/self/fd");
  size_t count = 0;
  while (::readdir(files) != nullptr) ++count;
  ::closedir(files);
  return count;
}

TEST(Restarts, RequestsEndAndOthersGoOn) {
  const size_t address_bytes = TestEngine().address().size();
  Restarter restarter(address_bytes);  // these first: this process has one thread until then
  OtherProcess steady(kBytes);
  std::vector<char> mine(kBytes, 'a'), also_mine(kBytes, 'b');
  TestEngine here;
  const slime_region local = here.add(mine), also_local = here.add(also_mine);
  const slime_peer other = here.know(steady.address);
  const slime_assignment to_other = {also_local, here.remote(other, steady.region), 0, 0, kBytes};
  std::mt19937_64 random(test::from_environment("SLIME_SEED", 1));
  uint64_t done = 0, failed = 0;
  int64_t longest_ns = 0;
  size_t files = 0;
  const test::Effort effort("SLIME_RESTARTS", kRestarts);
  for (uint64_t i = 0; !testing::Test::HasFailure() && effort.goes_on(i); ++i) {
    const slime_peer peer = here.know(restarter.address);
    const slime_remote remote = here.remote(peer, restarter.region);
    const slime_assignment all = {local, remote, 0, 0, kBytes};
    const slime_result first = here.run(peer, SLIME_READ, all);
    ASSERT_EQ(first.status, SLIME_OK) << first.text;
    ASSERT_TRUE(all_are(mine, 'x'));
    std::vector<slime_request> requests;
    const uint64_t deadline_ns = 500 * kMs, begin_ns = steady_now_ns();
    for (int k = 0; k < 6; ++k) {
      const int op = k % 2 == 0 ? SLIME_READ : SLIME_WRITE;
      requests.push_back(here.begin(peer, op, all, static_cast<int64_t>(deadline_ns)));
    }
    requests.push_back(here.notify(peer, "n", static_cast<int64_t>(deadline_ns)));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 1500));
    restarter.begin_restart(random() % 2 == 0 ? Command::kKill : Command::kClose);
    const slime_result went_on =
        here.run(other, random() % 2 == 0 ? SLIME_READ : SLIME_WRITE, to_other);
    EXPECT_EQ(went_on.status, SLIME_OK) << went_on.text;
    for (const slime_request request : requests) {
      ++(here.end(request).status == SLIME_OK ? done : failed);
    }
    longest_ns = std::max(longest_ns, static_cast<int64_t>(steady_now_ns() - begin_ns));
    set_all(mine, 'z');
    if (random() % 2 == 0) here.remove(peer);  // else its handle stays, and costs no file
    restarter.receive();
    EXPECT_TRUE(all_are(mine, 'z'));
    if (i == 5) files = open_files();
  }
  std::printf("%llu requests done, %llu failed; the last of a round ended after %.0f ms at most\n",
              static_cast<unsigned long long>(done), static_cast<unsigned long long>(failed),
              static_cast<double>(longest_ns) * 1e-6);
  EXPECT_TRUE(files == 0 || open_files() < files + 20);
}

}  // namespace
}  // namespace slime
