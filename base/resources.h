// Memory and threads that the machine, or a limit of the user's, may refuse.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <thread>

#include "base/error.h"

namespace slime {

// "ulimit -v is 30 MiB, 25 MiB of it in use"; empty where there is no such limit.
std::string memory_limit();
// The same without allocating: memory may be what is missing.
void describe_memory_limit(char* text, size_t bytes);

// "cannot start `what`: ..., and what to try" where there can be no thread more.
Result<std::thread> start_thread(const char* what, std::function<void()> body);

}  // namespace slime
