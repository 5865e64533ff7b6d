// The descriptors of this process. A process that the host application forks, as a data loader's
// worker, must not keep copies of them: while it lives, its kernel would acknowledge what peers
// send to a rank that was killed, and so no peer would notice. So a forked child closes them.
//
// States of a descriptor: in the table, owned by one Fd; shared with children, owned by an Fd and
// not in the table; or not ours. A child of fork(2) begins with an empty table: the Fds that it has
// copied from its parent are empty there, so they neither use nor close what the child opens under
// the same number.
//
// Threads: any. The table has no locks, as the handler runs in a child where other threads may have
// held them. A fork between open(2) and the entry in the table, or between its removal and
// close(2), makes a child with a copy of that descriptor. vfork, posix_spawn and a bare clone(2)
// call no handlers; the first two end with exec, which closes all (O_CLOEXEC).
#pragma once

#include <cstdint>
#include <utility>

namespace slime {

// The table. For what libraries open, see base/device_files.h.
class OwnDescriptors {
 public:
  // Changes in a child of fork(2).
  static uint32_t process() { return process_; }

 private:
  friend class Fd;
  static void add(int fd);
  static void remove(int fd);  // before it is closed
  static void close_in_child();
  static inline uint32_t process_ = 0;
};

// Owns one descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) { OwnDescriptors::add(fd); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)), process_(other.process_) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this == &other) return *this;
    reset();
    fd_ = std::exchange(other.fd_, -1);
    process_ = other.process_;
    return *this;
  }
  ~Fd() { reset(); }

  int get() const {
    return process_ == OwnDescriptors::process() || process_ == kAnyProcess ? fd_ : -1;
  }
  explicit operator bool() const { return get() >= 0; }
  int release();  // from now on the caller owns it, and forked children keep it
  void reset();
  // Forked children keep this descriptor, and may use it.
  void share_with_children();

 private:
  static constexpr uint32_t kAnyProcess = UINT32_MAX;

  int fd_ = -1;
  uint32_t process_ = OwnDescriptors::process();
};

}  // namespace slime
