#include "tools/common/resources.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

namespace slime::tools {
namespace {

// Nothing here may allocate: memory may be what is missing.
struct Words {
  char who[64] = "";
  char advice[160] = "";
  int exit_code = 1;
};
Words words;

constexpr double kMiB = 1024.0 * 1024;

// Of the address space, as ulimit -v counts it: the first number of statm, in pages (proc(5)).
double used_mib() {
  char text[64] = "";
  const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t bytes = read(fd, text, sizeof text - 1);
  close(fd);
  const double pages = bytes > 0 ? strtod(text, nullptr) : 0;
  return pages * static_cast<double>(sysconf(_SC_PAGESIZE)) / kMiB;
}

void describe_limit(char* text, size_t bytes) {
  rlimit limit{};
  text[0] = '\0';
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  snprintf(text, bytes, "ulimit -v is %.0f MiB, %.0f MiB of it in use",
           static_cast<double>(limit.rlim_cur) / kMiB, used_mib());
}

void say(const char* what, const char* detail) {
  char line[512];
  const int length = snprintf(line, sizeof line, "%s: %s%s%s; %s\n", words.who, what,
                              *detail != '\0' ? ": " : "", detail, words.advice);
  if (length > 0) {
    (void)!write(STDERR_FILENO, line, std::min(sizeof line - 1, static_cast<size_t>(length)));
  }
}

[[noreturn]] void on_terminate() {
  char limit[128];
  describe_limit(limit, sizeof limit);
  try {
    if (const auto thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    say("out of memory", limit);
    _exit(words.exit_code);
  } catch (const std::system_error& error) {
    say(error.what(), limit);
    _exit(words.exit_code);
  } catch (const std::exception& error) {
    fprintf(stderr, "%s: a bug: %s\n", words.who, error.what());
  } catch (...) {
    fprintf(stderr, "%s: a bug: an exception of an unknown kind\n", words.who);
  }
  std::abort();
}

void copy(const std::string& from, char* to, size_t bytes) {
  snprintf(to, bytes, "%s", from.c_str());
}

}  // namespace

void end_on_exceptions(const std::string& who, int exit_code, const std::string& advice) {
  copy(who, words.who, sizeof words.who);
  copy(advice, words.advice, sizeof words.advice);
  words.exit_code = exit_code;
  std::set_terminate(on_terminate);
}

std::string memory_limit() {
  char text[128];
  describe_limit(text, sizeof text);
  return text;
}

Result<std::thread> start_thread(const char* what, std::function<void()> body) {
  try {  // std::thread has no other way to say it
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

}  // namespace slime::tools
