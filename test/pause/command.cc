#include "test/pause/command.h"

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "test/pause/options.h"

namespace slime::pauser {
namespace {

struct Pipe {
  Fd read, write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail(system_error(errno, "pipe2 failed"));
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

// In the child: never returns. Only what is safe between fork and exec.
[[noreturn]] void become(char* const* command, const sigset_t& mask, int go, int failure) {
  setpgid(0, 0);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  char byte = 0;
  if (read(go, &byte, 1) != 1) _exit(kExitCannotRun);  // the pauser has ended, or may not trace
  execvp(command[0], command);
  const int error = errno;
  (void)!write(failure, &error, sizeof error);
  _exit(error == ENOENT ? kExitNotFound : kExitCannotRun);
}

Result<void> seize(pid_t pid) {
  const unsigned long options = PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                                PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
  if (ptrace(PTRACE_SEIZE, pid, nullptr, options) == 0) return {};
  const int code = errno;
  Error error = system_error(code,
                             "cannot trace the command (PTRACE_SEIZE); a container needs "
                             "CAP_SYS_PTRACE and a seccomp profile that permits ptrace, and a "
                             "traced process cannot trace");
  if (code == EPERM || code == EACCES || code == ENOSYS) error.status = Status::kUnsupported;
  return fail(std::move(error));
}

}  // namespace

Result<Command> Command::start(const std::vector<char*>& command, const sigset_t& mask) {
  auto go = make_pipe();
  auto failure = make_pipe();
  if (!go || !failure) return fail(go ? failure.error() : go.error());
  go->read.share_with_children();
  failure->write.share_with_children();
  const pid_t pid = fork();
  if (pid < 0) return fail(system_error(errno, "fork failed"));
  if (pid == 0) become(command.data(), mask, go->read.get(), failure->write.get());
  if (auto seized = seize(pid); !seized) {
    go->write.reset();
    waitpid(pid, nullptr, 0);
    return fail(std::move(seized.error()));
  }
  if (write(go->write.get(), "", 1) != 1) {
    return fail(system_error(errno, "write to the command's process failed"));
  }
  return Command(pid, std::move(failure->read));
}

int Command::exec_error() const {
  int error = 0;
  return read(failure_.get(), &error, sizeof error) == sizeof error ? error : 0;
}

}  // namespace slime::pauser
