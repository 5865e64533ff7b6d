// Runs work in a child process and reads its answer.
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/net/socket.h"
#include "base/text.h"
#include "settings/times.h"
#include "tools/info/probe.h"

namespace slime::info {
namespace {

// The answer is JSON in a pipe: the child writes it and exits, the parent reads up to the end of
// the stream, or up to the time limit, and then waits for the child's end. Each wait is bounded.
constexpr size_t kMostText = 4096;      // of one text in it
constexpr size_t kMaxAnswer = 4 << 20;  // more is garbage, and not parsed

[[noreturn]] void answer_and_exit(const std::function<nlohmann::json()>& work, int answer_fd) {
  dup2(STDERR_FILENO, STDOUT_FILENO);
  // A plugin's strings may hold bytes that are no UTF-8; they must not end the program.
  const std::string text = work().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t n = write(answer_fd, text.data() + sent, text.size() - sent);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    sent += static_cast<size_t>(n);
  }
  _exit(0);  // no destructors of ours or of the libraries: their threads may still run
}

// False: the limit passed before the child closed its end.
bool read_all(const Fd& fd, uint64_t limit_ns, std::string* text) {
  const SteadyClock& clock = SteadyClock::instance();
  const uint64_t deadline = clock.now_ns() + limit_ns;
  for (char buffer[4096]; text->size() < kMaxAnswer;) {
    const uint64_t now = clock.now_ns();
    if (now >= deadline) return false;
    pollfd waiting{fd.get(), POLLIN, 0};
    const int ready = poll(&waiting, 1, static_cast<int>((deadline - now) / 1000000) + 1);
    if (ready < 0 && errno != EINTR) return true;  // what is there is judged by its form
    if (ready <= 0) continue;
    const ssize_t n = read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    text->append(buffer, static_cast<size_t>(n));
  }
  return true;
}

// Collects the child. False: it has not ended within the time.
bool collect(pid_t child, int* status) {
  const SteadyClock& clock = SteadyClock::instance();
  const uint64_t deadline = clock.now_ns() + times::kChildEnd;
  for (;;) {
    const bool late = clock.now_ns() > deadline;
    const pid_t ended = waitpid(child, status, WNOHANG);
    // ECHILD: SIGCHLD is ignored, so the kernel has collected it.
    if (ended == child || (ended < 0 && errno != EINTR)) return true;
    if (late) return false;
    usleep(1000);
  }
}

std::string describe_exit(int status) {
  if (!WIFSIGNALED(status)) return "with exit status " + std::to_string(WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  return "by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
}

// The texts of plugins and libraries become lines and cells.
void clean_texts(nlohmann::json* value) {
  if (value->is_string()) *value = displayed(value->get_ref<const std::string&>(), kMostText);
  if (!value->is_structured()) return;
  for (auto& one : *value) clean_texts(&one);
}

}  // namespace

Result<nlohmann::json> run_in_child(const std::function<nlohmann::json()>& work, uint64_t limit_ns,
                                    const std::string& what) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return fail(system_error(errno, "%s: no pipe to a child process", what.c_str()));
  }
  Fd answer_end(ends[0]), child_end(ends[1]);
  child_end.share_with_children();
  const pid_t child = fork();
  if (child < 0) return fail(system_error(errno, "%s: no child process", what.c_str()));
  if (child == 0) answer_and_exit(work, child_end.get());
  child_end.reset();  // from now on the child's exit ends the stream
  std::string text;
  const bool in_time = read_all(answer_end, limit_ns, &text);
  answer_end.reset();  // a child that still writes gets SIGPIPE, and ends
  // A library may close the child's end of the pipe and go on. A process that waits in a driver
  // does not even end by SIGKILL; it is left to init.
  int status = 0;
  const bool ended = in_time && collect(child, &status);
  if (!ended) {
    kill(child, SIGKILL);
    (void)collect(child, &status);
  }
  if (!in_time) {
    return fail(make_error(Status::kTimeout, 0, "%s did not end within %.0f s", what.c_str(),
                           static_cast<double>(limit_ns) / times::kSecond));
  }
  auto answer = parse_json<nlohmann::json>(text, what, {.bytes = kMaxAnswer});
  if (!answer || !answer->is_object()) {
    const std::string end = ended ? "ended " + describe_exit(status) : "gave no answer";
    return fail(make_error(Status::kInternal, 0, "%s: the process %s", what.c_str(), end.c_str()));
  }
  clean_texts(&*answer);
  return answer;
}

}  // namespace slime::info
