// Runs a check in a child of fork().
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace slime::test {

// Whether `holds` is true there.
inline bool in_child(const std::function<bool()>& holds) {
  const pid_t child = fork();
  if (child == 0) _exit(holds() ? 0 : 1);
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace slime::test
