// What a tool says and does where the machine, or a limit of the user's, gives it no memory or no
// thread.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "base/error.h"

namespace slime::tools {

// Memory that is missing, or another exception that nobody catches, in whatever thread, ends the
// process with one sentence and this exit code. `who` begins the sentence ("slime-perf: rank 1"),
// `advice` ends it. May be called again with other words.
void end_on_exceptions(const std::string& who, int exit_code, const std::string& advice);

// "ulimit -v is 30 MiB, 25 MiB of it in use"; empty where there is no such limit.
std::string memory_limit();

// "cannot start `what`: ..., and what to try" where there can be no thread more.
Result<std::thread> start_thread(const char* what, std::function<void()> body);

}  // namespace slime::tools
