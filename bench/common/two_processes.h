// Two processes of one program that talk over loopback and share a little memory.
#pragma once

#include <sys/mman.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <new>

namespace slime::bench {

// Where the processes meet. Lies in shared memory; the atomics are lock-free, so they work there.
class Barrier {
 public:
  void wait();

 private:
  static_assert(std::atomic<uint32_t>::is_always_lock_free);
  alignas(64) std::atomic<uint32_t> arrived_{0};
};

// Shared memory for one T, zeroed, until the end of the program.
template <typename T>
T* make_shared_memory() {
  void* memory =
      mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : new (memory) T();
}

// Runs `body(0)` here and `body(1)` in a child. False, after a message: one of them failed, or
// took longer than `limit_s`.
bool run_two_processes(unsigned limit_s, const std::function<bool(int)>& body);

// A pair of connected TCP sockets over 127.0.0.1, Nagle's delay switched off. To be made before the
// processes part; each keeps its end. Exits with a message when there is no loopback.
struct SocketPair {
  int ends[2];
};
SocketPair make_loopback_pair();
void set_blocking(int fd, bool blocking);

}  // namespace slime::bench
