// How often a thread has asked for heap memory: see heap_hooks.h, which a program needs once.
#pragma once

#include <cstdint>

namespace slime::test {

inline constinit thread_local uint64_t heap_counter = 0;

// By this thread, since it began.
inline uint64_t heap_allocations() { return heap_counter; }

}  // namespace slime::test
