#include "rendezvous/launcher.h"

#include <fcntl.h>
#include <net/if.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/interfaces/interfaces.h"
#include "base/net/socket.h"
#include "base/random.h"
#include "rendezvous/identity.h"
#include "settings/times.h"

namespace slime::rendezvous {
namespace {

using times::kSecond;

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
volatile sig_atomic_t signals = 0;  // that came
void on_signal(int) { signals = signals + 1; }

void change_mask(int how) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : kSignals) sigaddset(&set, number);
  sigprocmask(how, &set, nullptr);
}
void block_signals() { change_mask(SIG_BLOCK); }
void unblock_signals() { change_mask(SIG_UNBLOCK); }

void catch_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  for (const int number : kSignals) {
    struct sigaction before {};
    sigaction(number, nullptr, &before);
    // Under nohup(1) SIGHUP is ignored, and stays so: the run goes on without its terminal.
    if (number != SIGHUP || before.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
  }
}

struct Child {
  pid_t pid = 0;
  bool running = false;
};

// Stopped by a signal: the third field of /proc/PID/stat (proc(5)), behind the name in brackets.
bool is_stopped(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const size_t bracket = text.rfind(") ");
  return bracket != std::string::npos && text.size() > bracket + 2 && text[bracket + 2] == 'T';
}

// The program's own file. Not /proc/self/exe: ps and pgrep would show "exe" as the ranks' name.
std::string own_path() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length > 0 && length < PATH_MAX ? std::string(path, static_cast<size_t>(length))
                                         : "/proc/self/exe";
}

std::string hex_of(const Nonce& nonce) {
  std::string text;
  char digits[3];
  for (const std::byte byte : nonce) {
    snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(byte));
    text += digits;
  }
  return text;
}

// In the child: never returns. Only what is safe between fork and exec; there is no thread yet.
[[noreturn]] void become_rank(const LocalRun& run, const Identity& identity, pid_t parent,
                              const char* program, char** argv) {
  // The kernel ends this process with its parent, however that ends. The parent may have ended
  // before the call, so it is looked for.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(run.failed_code);
  (void)signal(SIGINT, SIG_IGN);  // a Ctrl-C is the launcher's to pass on
  (void)signal(SIGHUP, SIG_IGN);  // and so is a terminal that closes
  (void)signal(SIGTERM, SIG_DFL);
  unblock_signals();
  if (identity.listen_fd >= 0) fcntl(identity.listen_fd, F_SETFD, 0);
  for (const auto& [name, value] : variables_for(identity)) setenv(name.c_str(), value.c_str(), 1);
  execv(program, argv);
  fprintf(stderr, "%s: cannot start rank %d: %s\n", run.program, identity.rank, strerror(errno));
  _exit(run.failed_code);
}

// Ranks of one host use loopback unless the user names interfaces. Loopback works whatever NICs and
// firewalls the host has, and another interface would test no NIC: the kernel routes packets to an
// address of its own host over loopback anyway.
void prefer_loopback() {
  for (const char* const choice :
       {"NCCL_SLIME_IFNAME", "NCCL_SOCKET_IFNAME", "NCCL_SLIME_SOCKET_SUBNET"}) {
    if (getenv(choice) != nullptr) return;
  }
  setenv("NCCL_SLIME_IFNAME", "=lo", 1);
}

// States: listening -> ranks running -> (ending: a deadline is set) -> all gone. One thread; the
// signal handler only counts.
class Launcher {
 public:
  explicit Launcher(const LocalRun& run) : run_(run), code_(0) {}

  int run(char** argv) {
    Identity identity;
    Fd listener;
    if (!loopback_is_up() || !listen(&identity, &listener)) return run_.failed_code;
    prefer_loopback();
    catch_signals();
    // Signals wait until all ranks are started: one that came between fork and exec would be
    // handled by the copy of this launcher, and the rank would not end.
    block_signals();
    const bool started = start(identity, listener.get(), argv);
    unblock_signals();
    if (!started) {
      end_all(SIGKILL);
      failed_ = true;
    }
    listener.reset();
    wait_for_all();
    if (failed_) return run_.failed_code;
    return interrupted_ ? run_.interrupted_code : code_;
  }

 private:
  // Ranks would wait for each other until their time-out.
  bool loopback_is_up() const {
    const auto records = interface_records();
    const auto is_up = [](const InterfaceRecord& record) {
      return (record.flags & IFF_LOOPBACK) != 0 && (record.flags & IFF_UP) != 0;
    };
    if (!records || std::ranges::any_of(*records, is_up)) return true;
    fprintf(stderr,
            "%s: the loopback interface is down, over which the ranks of one host meet; `ip link "
            "set lo up` brings it up in this network namespace\n",
            run_.program);
    return false;
  }

  bool listen(Identity* identity, Fd* listener) {
    auto address = SocketAddress::parse("127.0.0.1");
    auto fd = address ? listen_on(*address) : Result<Fd>(fail(address.error()));
    auto bound = fd ? local_address(*fd) : Result<SocketAddress>(fail(fd.error()));
    // With an empty token, which every other process could name, anybody could join the run.
    auto nonce = bound ? random_nonce() : Result<Nonce>(fail(bound.error()));
    if (!nonce) {
      fprintf(stderr, "%s: %s\n", run_.program, nonce.error().what.c_str());
      return false;
    }
    identity->size = run_.ranks;
    identity->host = "127.0.0.1";
    identity->port = bound->port();
    identity->token = hex_of(*nonce);
    *listener = std::move(*fd);
    listener->share_with_children();  // rank 0 takes it over
    return true;
  }

  bool start(Identity identity, int listener, char** argv) {
    const pid_t parent = getpid();
    const std::string program = own_path();
    for (int rank = 0; rank < run_.ranks; ++rank) {
      identity.rank = identity.local_rank = rank;
      identity.listen_fd = rank == 0 ? listener : -1;
      const pid_t pid = fork();
      if (pid == 0) become_rank(run_, identity, parent, program.c_str(), argv);
      if (pid < 0) {
        fprintf(stderr, "%s: cannot start rank %d: %s\n", run_.program, rank, strerror(errno));
        return false;
      }
      children_.push_back({pid, true});
    }
    return true;
  }

  // After one rank has failed the others end within seconds, by the coordinator's verdict. A
  // stopped rank cannot end by itself: it is killed when no other is left. Any other is killed
  // after kRunFailure.
  void wait_for_all() {
    uint64_t deadline = UINT64_MAX;
    while (std::any_of(children_.begin(), children_.end(),
                       [](const Child& child) { return child.running; })) {
      int status = 0;
      const pid_t pid = waitpid(-1, &status, WNOHANG);
      if (pid > 0 && note(pid, status))
        deadline = std::min(deadline, steady_now_ns() + times::kRunFailure);
      deadline = std::min(deadline, pass_on_signals());
      const bool only_stopped = deadline != UINT64_MAX && only_stopped_left();
      if (steady_now_ns() > deadline || only_stopped) {
        end_all(SIGKILL);
        killed_on_request_ = !failed_ && code_ <= run_.last_good_code;
        deadline = UINT64_MAX;
      }
      if (pid <= 0) usleep(20000);
    }
  }

  // Returns when ranks that are still there then are to be killed.
  uint64_t pass_on_signals() {
    if (signals == passed_on_) return UINT64_MAX;
    passed_on_ = signals;
    end_all(SIGTERM);
    const uint64_t now = steady_now_ns();
    if (asked_ns_ == 0) asked_ns_ = now;
    const bool may_finish = run_.ends_on_request && now < asked_ns_ + kSameRequestNs;
    return may_finish ? UINT64_MAX : now + times::kRunSignal;
  }

  bool only_stopped_left() const {
    return std::all_of(children_.begin(), children_.end(),
                       [](const Child& child) { return !child.running || is_stopped(child.pid); });
  }

  // True: this end means that the others must end too.
  bool note(pid_t pid, int status) {
    const auto child = std::find_if(children_.begin(), children_.end(),
                                    [pid](const Child& one) { return one.pid == pid; });
    if (child == children_.end()) return false;
    child->running = false;
    const auto rank = child - children_.begin();
    if (WIFSIGNALED(status)) {
      note_signal(rank, pid, WTERMSIG(status));
      return true;
    }
    const int code = WEXITSTATUS(status);
    code_ = std::max(code_, code);
    return code > run_.last_good_code;
  }

  void note_signal(ptrdiff_t rank, pid_t pid, int number) {
    const bool ours = number == SIGTERM || (number == SIGKILL && killed_on_request_);
    if (signals != 0 && ours) {
      interrupted_ = true;
      return;
    }
    fprintf(stderr, "%s: rank %td (process %d) was killed by signal %d (%s)\n", run_.program, rank,
            pid, number, strsignal(number));
    failed_ = true;
  }

  void end_all(int number) {
    for (const Child& child : children_) {
      if (child.running) kill(child.pid, number);
    }
  }

  const LocalRun run_;
  std::vector<Child> children_;
  sig_atomic_t passed_on_ = 0;  // signals
  uint64_t asked_ns_ = 0;       // when the first was
  bool killed_on_request_ = false;
  int code_;
  bool interrupted_ = false;  // a signal to the launcher has ended a rank
  bool failed_ = false;       // another one has
};

}  // namespace

int launch(const LocalRun& run, char** argv) { return Launcher(run).run(argv); }

}  // namespace slime::rendezvous
