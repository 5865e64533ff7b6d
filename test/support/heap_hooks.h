// Counts the heap allocations of each thread: malloc, calloc, realloc and their aligned forms, and
// with them operator new, which calls malloc. Include it in exactly one source file of a
// program; it replaces the functions of libc, also for shared objects that the binary loads, like
// the plugin.
//
// Counted per thread: what must not allocate is the thread that calls, as NCCL's progress thread
// does. Other threads of the process (a housekeeper, a switch of the test) allocate when they like.
//
// A sanitizer brings a malloc of its own, which calls a hook instead.
#pragma once

#include <cerrno>
#include <cstddef>

#include "test/support/heap_count.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, size_t),
                                                         void (*)(const volatile void*));

namespace slime::test {
inline const int heap_hooks_installed = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, size_t) { ++heap_counter; }, [](const volatile void*) {});
}  // namespace slime::test

#else

// glibc's own names of its functions.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

[[gnu::visibility("default")]] void* malloc(size_t bytes) noexcept {
  ++slime::test::heap_counter;
  return __libc_malloc(bytes);
}
[[gnu::visibility("default")]] void* calloc(size_t count, size_t bytes) noexcept {
  ++slime::test::heap_counter;
  return __libc_calloc(count, bytes);
}
[[gnu::visibility("default")]] void* realloc(void* memory, size_t bytes) noexcept {
  ++slime::test::heap_counter;
  return __libc_realloc(memory, bytes);
}
[[gnu::visibility("default")]] void* memalign(size_t alignment, size_t bytes) noexcept {
  ++slime::test::heap_counter;
  return __libc_memalign(alignment, bytes);
}
[[gnu::visibility("default")]] void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  return memalign(alignment, bytes);
}
[[gnu::visibility("default")]] int posix_memalign(void** memory, size_t alignment,
                                                  size_t bytes) noexcept {
  void* const made = memalign(alignment, bytes);
  if (made == nullptr) return ENOMEM;
  *memory = made;
  return 0;
}
}

#endif
