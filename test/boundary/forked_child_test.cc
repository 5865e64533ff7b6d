// A rank that is killed while a process that it forked lives on. The child has copies of its
// sockets, so the kernel goes on acknowledging for it. SLIME_VERBS_RAILS ("rxe0,rxe1") names real
// RDMA ports to try it with; a copy of their descriptors would keep the killed rank's queue pairs.
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/boundary/support/net.h"

namespace slime::boundary {
namespace {

enum class Forks : uint8_t { kByLibc, kWithoutHandlers };

// What the rank tells the test.
struct Report {
  pid_t child = -1;
};

class ForkedChild : public NetTest {
 protected:
  ForkedChild() : NetTest(11) {}
  ~ForkedChild() override {
    end(rank_);
    end(report_.child);
    for (const int fd : pipe_) close(fd);
  }

  static void end(pid_t pid) {
    if (pid <= 0) return;
    kill(pid, SIGKILL);
    (void)waitpid(pid, nullptr, 0);  // of a child of ours
  }

  void use_verbs_if_real() {
    const char* const rails = getenv("SLIME_VERBS_RAILS");
    if (rails == nullptr) return;
    const std::string names(rails);
    set("NCCL_SLIME_TRANSPORTS", "verbs");
    set("NCCL_SLIME_HCA", ("=" + names.substr(0, names.find(','))).c_str());
    set("NCCL_SLIME_IB_TIMEOUT", "16");  // the NIC gives up after some seconds
    unsetenv("NCCL_SLIME_IFNAME");
  }

  // Starts the other rank, which sends nothing: it forks, and then moves its connection.
  void start_rank(Forks forks) {
    ASSERT_EQ(pipe(pipe_.data()), 0);
    rank_ = fork();
    ASSERT_GE(rank_, 0);
    if (rank_ == 0) be_rank(forks);
    ASSERT_EQ(net_.init(), nccl::kSuccess);
    HandleBytes handle{};
    ASSERT_EQ(read(pipe_[0], handle.data(), handle.size()), static_cast<ssize_t>(handle.size()));
    ASSERT_TRUE(wait_until([&] {
      EXPECT_EQ(net_.connect(0, handle.data(), &send_), nccl::kSuccess) << Log::text();
      return send_ != nullptr || HasFailure();
    }));
    ASSERT_EQ(read(pipe_[0], &report_, sizeof report_), static_cast<ssize_t>(sizeof report_));
    ASSERT_GT(report_.child, 0);
  }

  [[noreturn]] void be_rank(Forks forks) {
    HandleBytes handle{};
    void *listening = nullptr, *recv = nullptr;
    bool good = net_.init() == nccl::kSuccess &&
                net_.listen(0, handle.data(), &listening) == nccl::kSuccess &&
                write(pipe_[1], handle.data(), handle.size()) > 0;
    good = good && wait_until([&] {
             return net_.accept(listening, &recv) != nccl::kSuccess || recv != nullptr;
           });
    if (!good || recv == nullptr) _exit(1);
    Report report;
    report.child =
        forks == Forks::kByLibc ? fork() : static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0));
    if (report.child == 0) {
      for (;;) pause();
    }
    if (write(pipe_[1], &report, sizeof report) < 0) _exit(1);
    for (;;) pause();
  }

  void kill_rank() {
    end(rank_);
    rank_ = 0;
  }

  // Calls isend until it fails; nobody receives. False: it did not within the time.
  bool send_fails() {
    Buffer from(net_, send_, 1 << 20);
    return wait_until([&] {
      Open sent;
      return net_.isend(send_, from.data(), 1 << 20, 0, from.mhandle, &sent.request) !=
             nccl::kSuccess;
    });
  }
  void close_all() {
    EXPECT_EQ(net_.close_send(send_), nccl::kSuccess);
    finalize();
  }

  std::array<int, 2> pipe_{-1, -1};
  pid_t rank_ = 0;
  Report report_;
  void* send_ = nullptr;
};

// No time-out of ours is reached.
TEST_F(ForkedChild, OfLibcHidesNoDeath) {
  set("NCCL_SLIME_PEER_TIMEOUT", "600");
  use_verbs_if_real();
  ASSERT_NO_FATAL_FAILURE(start_rank(Forks::kByLibc));
  kill_rank();
  EXPECT_TRUE(send_fails());
  EXPECT_GT(Log::count(nccl::kLogWarn), 0u) << Log::text();
  close_all();
}

TEST_F(ForkedChild, WithoutHandlersIsFoundByAQuestion) {
  set("NCCL_SLIME_RAILS_PER_IF", "2");
  set("NCCL_SLIME_PEER_TIMEOUT", "1");
  set("NCCL_SLIME_ANSWER_TIMEOUT", "3");
  ASSERT_NO_FATAL_FAILURE(start_rank(Forks::kWithoutHandlers));
  kill_rank();
  EXPECT_TRUE(send_fails());
  EXPECT_GT(Log::count(nccl::kLogWarn, "has not answered for 1 s"), 0u) << Log::text();
  EXPECT_GT(Log::count(nccl::kLogWarn, "NCCL_SLIME_ANSWER_TIMEOUT"), 0u) << Log::text();
  close_all();
}

}  // namespace
}  // namespace slime::boundary
