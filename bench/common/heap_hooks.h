// Replaces operator new and delete by ones that count. Include it in exactly one source file of a
// program. The array forms end here too ([new.delete]); so would the nothrow ones, but a sanitizer
// brings its own.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "bench/common/heap_count.h"

namespace slime::bench {

inline void* counted_allocation(std::size_t bytes, std::size_t alignment) {
  heap_counter.fetch_add(1, std::memory_order_relaxed);
  if (bytes == 0) bytes = 1;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = alignment <= alignof(std::max_align_t) ? std::malloc(bytes)
                                                        : std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) {
    std::fprintf(stderr, "out of memory: %zu bytes\n", bytes);
    std::abort();
  }
  return memory;
}

}  // namespace slime::bench

void* operator new(std::size_t bytes) {
  return slime::bench::counted_allocation(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return slime::bench::counted_allocation(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return slime::bench::counted_allocation(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return slime::bench::counted_allocation(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
