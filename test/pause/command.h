// The command as a process that is traced from its first instruction on.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <vector>

#include "base/error.h"
#include "base/net/socket.h"

namespace slime::pauser {

class Command {
 public:
  // In a process group of its own, with the signal mask `mask`. `command` ends with a null pointer.
  // Status::kUnsupported: this process may trace nobody.
  static Result<Command> start(const std::vector<char*>& command, const sigset_t& mask);

  pid_t pid() const { return pid_; }
  // Once it has ended: errno of its execvp, 0 if it became the command.
  int exec_error() const;

 private:
  Command(pid_t pid, Fd failure) : pid_(pid), failure_(std::move(failure)) {}

  pid_t pid_;
  Fd failure_;
};

}  // namespace slime::pauser
