// Facts about this process: its host, its limit of memory, and its threads.
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

// "ulimit -v is 30 MiB, 25 MiB of it in use"; empty if there is no such limit.
std::string memory_limit();
// The same text, without an allocation, for errors about missing memory.
void describe_memory_limit(char* text, size_t bytes);

// The name that gethostname(2) returns, cut at 255 bytes; "unknown-host" if it fails.
std::string own_host_name();

// Starts a thread. If the system allows no further thread, the error says "cannot start `what`:
// ..." and what to try.
Result<std::thread> start_thread(const char* what, std::function<void()> body);

// Starts a thread that blocks all signals, because they belong to the host application's threads.
// It runs `main_of_thread(argument)`. Returns 0 or the errno of pthread_create(3).
int start_thread_without_signals(pthread_t* thread, void* (*main_of_thread)(void*), void* argument);

}  // namespace slime
