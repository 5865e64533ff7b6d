#include "tools/common/resources.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>

#include "base/process.h"

namespace slime::tools {
namespace {

// Nothing here may allocate: memory may be what is missing.
struct Words {
  char who[64] = "";
  char advice[160] = "";
  int exit_code = 1;
};
Words words;

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
  describe_memory_limit(limit, sizeof limit);
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

void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);  // it always may go up to the hard one
}

}  // namespace slime::tools
