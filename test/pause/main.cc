// pause: runs a command and stops random threads of it for random times, as a machine with too few
// cores does. What a test takes for granted about time fails under it.
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "test/pause/command.h"
#include "test/pause/options.h"
#include "test/pause/pauser.h"

namespace slime::pauser {
namespace {

sigset_t block_signals(sigset_t* before) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, number);
  sigprocmask(SIG_BLOCK, &signals, before);
  return signals;
}

int run(int argc, char** argv) {
  const auto parsed = parse_options(argc, argv);
  if (const int* code = std::get_if<int>(&parsed)) return *code;
  const auto& options = std::get<Options>(parsed);
  const auto seed = static_cast<unsigned long long>(options.seed);
  fprintf(stderr, "pause: %g stops a second of up to %g s, seed %llu\n", options.rate,
          options.longest_s, seed);
  sigset_t before;
  const sigset_t signals = block_signals(&before);
  const auto command = Command::start(options.command, before);
  if (!command) {
    fprintf(stderr, "pause: %s\n", command.error().what.c_str());
    return command.error().status == Status::kUnsupported ? kExitSkipped : kExitCannotRun;
  }
  Pauser pauser(options, command->pid(), signals);
  const int status = pauser.run();
  if (const int error = command->exec_error(); error != 0) {
    fprintf(stderr, "pause: cannot run %s: %s\n", options.command[0], strerror(error));
    return error == ENOENT ? kExitNotFound : kExitCannotRun;
  }
  const Summary summary = pauser.summary();
  fprintf(stderr, "pause: %lu stops of %lu threads of %lu, the longest %.3f s; seed %llu\n",
          summary.stops, summary.threads_stopped, summary.threads_seen,
          static_cast<double>(summary.longest_ns) / 1e9, seed);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace
}  // namespace slime::pauser

int main(int argc, char** argv) { return slime::pauser::run(argc, argv); }
