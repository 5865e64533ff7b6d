#include "base/fd.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>

namespace slime {
namespace {

// As many as a process may have unless fs.nr_open was raised (proc_sys_fs(5)). Later ones are
// not in the table. Pages that are never used take no memory.
constexpr size_t kMost = size_t{1} << 20;
constexpr size_t kBits = 64;

std::array<std::atomic<uint64_t>, kMost / kBits> table;
std::atomic<bool> registered = false;  // the handler
std::atomic<size_t> used_words = 0;    // of the table, from its beginning

uint64_t bit_of(int fd) { return uint64_t{1} << (static_cast<size_t>(fd) % kBits); }

}  // namespace

void OwnDescriptors::add(int fd) {
  const size_t word = static_cast<size_t>(fd) / kBits;
  if (fd < 0 || word >= table.size()) return;
  // It fails only for want of memory; peers then notice later.
  if (!registered.exchange(true)) (void)pthread_atfork(nullptr, nullptr, close_in_child);
  size_t used = used_words.load(std::memory_order_relaxed);
  while (used <= word && !used_words.compare_exchange_weak(used, word + 1)) {
  }
  table[word].fetch_or(bit_of(fd), std::memory_order_relaxed);
}

void OwnDescriptors::remove(int fd) {
  const size_t word = static_cast<size_t>(fd) / kBits;
  if (fd < 0 || word >= table.size()) return;
  table[word].fetch_and(~bit_of(fd), std::memory_order_relaxed);
}

// Runs in the child before fork() returns there. Calls only what is safe in a signal handler.
void OwnDescriptors::close_in_child() {
  ++process_;
  for (size_t word = 0; word < used_words; ++word) {
    for (uint64_t left = table[word].exchange(0); left != 0; left &= left - 1) {
      (void)close(static_cast<int>(word * kBits) + std::countr_zero(left));
    }
  }
}

int Fd::release() {
  const int fd = get();
  OwnDescriptors::remove(fd);
  fd_ = -1;
  return fd;
}

void Fd::reset() {
  const int fd = release();
  // close(2) on Linux frees the descriptor even when it fails, so it is never tried again.
  if (fd >= 0) (void)close(fd);
}

void Fd::share_with_children() {
  OwnDescriptors::remove(get());
  process_ = kAnyProcess;
}

}  // namespace slime
