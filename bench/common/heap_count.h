// How often this program has asked for heap memory: operator new in all its forms, see
// heap_hooks.h.
#pragma once

#include <atomic>
#include <cstdint>

namespace slime::bench {

inline std::atomic<uint64_t> heap_counter{0};

inline uint64_t heap_allocations() { return heap_counter.load(std::memory_order_relaxed); }

}  // namespace slime::bench
