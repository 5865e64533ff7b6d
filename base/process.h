// This process: the host it runs on, and the memory and threads that the machine, or a limit of
// the user's, may refuse it.
//
// Threads: any.
#pragma once

#include <pthread.h>

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

// What gethostname(2) says, cut at 255 bytes; "unknown-host" where it fails.
std::string own_host_name();

// "cannot start `what`: ..., and what to try" where there can be no thread more.
Result<std::thread> start_thread(const char* what, std::function<void()> body);

// A thread that takes none of the process's signals: those are for the host application's threads.
// `main_of_thread(argument)` runs in it. Returns 0 or the errno of pthread_create(3).
int start_thread_without_signals(pthread_t* thread, void* (*main_of_thread)(void*), void* argument);

}  // namespace slime
