// What glibc gained after 2.28 and the compiler's headers, libstdc++.a or libgcc_eh.a ask for, made
// of what 2.28 has. The functions are linked, hidden, into the plugin and the programs, and never
// into libslime.a: they would replace those of its user. All but one are the same on every system,
// so that every system tests them. portable/glibc.symbols holds what was only moved.
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

int64_t now_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * kSecondNs + now.tv_nsec;
}

#ifdef DLFO_EH_SEGMENT_TYPE
// The object whose segments have the address, if it has a table of frames.
int look_into(dl_phdr_info* info, size_t, void* wanted) {
  auto* result = static_cast<dl_find_object*>(wanted);
  const auto pc = reinterpret_cast<uintptr_t>(result->dlfo_map_start);
  bool has_it = false;
  void* frames = nullptr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    const uintptr_t start = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && pc >= start && pc - start < segment.p_memsz) has_it = true;
    if (segment.p_type == PT_GNU_EH_FRAME) frames = reinterpret_cast<void*>(start);
  }
  if (has_it) result->dlfo_eh_frame = frames;
  return has_it ? 1 : 0;
}
#endif

}  // namespace

extern "C" {

// 2.32: counters of references need no atomic instruction where it is true. False is always right.
char __libc_single_threaded = 0;

// 2.33: before, headers made them of __xstat and its like. The kernel fills in this struct itself.
int stat(const char* path, struct stat* result) noexcept {
  return static_cast<int>(syscall(SYS_stat, path, result));
}
int lstat(const char* path, struct stat* result) noexcept {
  return static_cast<int>(syscall(SYS_lstat, path, result));
}
int fstat(int fd, struct stat* result) noexcept {
  return static_cast<int>(syscall(SYS_fstat, fd, result));
}
int fstat64(int fd, struct stat64* result) noexcept {  // of libstdc++.a; the struct is the same
  return static_cast<int>(syscall(SYS_fstat, fd, result));
}

// 2.30: waits by the clock of the caller's choice. Where libc has none, pthread_cond_timedwait()
// waits by the wall clock, for a second at most, as returning 0 too early is allowed; if that clock
// is set back meanwhile, the wait takes so much longer.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* until) {
  using ClockWait = int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
  static auto* const of_libc =
      reinterpret_cast<ClockWait*>(dlsym(RTLD_DEFAULT, "pthread_cond_clockwait"));
  if (of_libc != nullptr) return of_libc(condition, mutex, clock, until);
  if (until->tv_nsec < 0 || until->tv_nsec >= kSecondNs) return EINVAL;
  const auto left_ns = [&] {
    const int64_t seconds = std::clamp<int64_t>(until->tv_sec, -1, INT64_MAX / kSecondNs - 1);
    return seconds * kSecondNs + until->tv_nsec - now_ns(clock);
  };
  const int64_t wall_ns = now_ns(CLOCK_REALTIME) + std::clamp<int64_t>(left_ns(), 0, kSecondNs);
  const timespec wall{wall_ns / kSecondNs, wall_ns % kSecondNs};
  const int result = pthread_cond_timedwait(condition, mutex, &wall);
  return result == ETIMEDOUT && left_ns() > 0 ? 0 : result;
}

#ifdef DLFO_EH_SEGMENT_TYPE
// 2.35: libgcc's way to the table of frames, when an exception is thrown. It reads no other field.
int _dl_find_object(void* pc, dl_find_object* result) noexcept {
  *result = {};
  result->dlfo_map_start = pc;
  dl_iterate_phdr(look_into, result);
  return result->dlfo_eh_frame != nullptr ? 0 : -1;
}
#endif

}  // extern "C"
