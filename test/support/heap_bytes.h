// How much of the heap something takes.
#pragma once

#include <malloc.h>

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
extern "C" size_t __sanitizer_get_current_allocated_bytes();
#endif

namespace slime::test {

// A sanitizer rounds each allocation up.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kHeapIsExact = false;
inline size_t heap_bytes() { return __sanitizer_get_current_allocated_bytes(); }
#else
inline constexpr bool kHeapIsExact = true;
inline size_t heap_bytes() {
  const auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}
#endif

// Bytes of the heap that `make` leaves in use, in all threads.
template <typename Make>
size_t heap_bytes_of(Make make) {
  const size_t before = heap_bytes();
  make();
  return heap_bytes() - before;
}

}  // namespace slime::test
