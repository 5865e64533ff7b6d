#include "base/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

namespace slime {
namespace {

constexpr double kMiB = 1024.0 * 1024;

// The size of the address space, as ulimit -v counts it: the first number of statm, in pages
// (proc(5)).
double used_mib() {
  char text[64] = "";
  const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t bytes = read(fd, text, sizeof text - 1);
  close(fd);
  const double pages = bytes > 0 ? strtod(text, nullptr) : 0;
  return pages * static_cast<double>(sysconf(_SC_PAGESIZE)) / kMiB;
}

}  // namespace

// Allocates nothing: the caller may be out of memory.
void describe_memory_limit(char* text, size_t bytes) {
  rlimit limit{};
  text[0] = '\0';
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  snprintf(text, bytes, "ulimit -v is %.0f MiB, %.0f MiB of it in use",
           static_cast<double>(limit.rlim_cur) / kMiB, used_mib());
}

std::string memory_limit() {
  char text[128];
  describe_memory_limit(text, sizeof text);
  return text;
}

std::string own_host_name() {
  char name[256] = "";  // a host name has 64 bytes on Linux, 255 by POSIX (gethostname(2))
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown-host";
}

Result<std::thread> start_thread(const char* what, std::function<void()> body) {
  try {  // std::thread reports a failure only by an exception
    return std::thread(std::move(body));
  } catch (const std::system_error& error) {
    const std::string limit = memory_limit();
    return fail(make_error(Status::kNoMemory, error.code().value(),
                           "cannot start %s: %s (errno %d)%s%s; a thread needs memory for its "
                           "stack (ulimit -v, ulimit -s) and a place among the user's processes "
                           "(ulimit -u)",
                           what, strerror(error.code().value()), error.code().value(),
                           limit.empty() ? "" : ": ", limit.c_str()));
  }
}

// A new thread inherits the mask of the one that makes it (pthread_sigmask(3)).
int start_thread_without_signals(pthread_t* thread, void* (*main_of_thread)(void*),
                                 void* argument) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int code = pthread_create(thread, nullptr, main_of_thread, argument);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return code;
}

}  // namespace slime
