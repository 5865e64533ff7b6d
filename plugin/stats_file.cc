#include "plugin/stats.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "base/clock.h"
#include "base/net/socket.h"
#include "settings/times.h"

namespace slime::plugin {
namespace {

[[gnu::format(printf, 1, 2)]] tl::unexpected<Error> refuse(const char* format, ...) {
  char why[PATH_MAX + 256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(why, sizeof why, format, arguments);
  va_end(arguments);
  return fail(make_error(Status::kConfig, 0, "NCCL_SLIME_STATS: %s", why));
}

// Whether the file is this process's standard output or standard error.
bool is_own_output(const struct stat& file) {
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat open {};
    if (fstat(fd, &open) == 0 && open.st_dev == file.st_dev && open.st_ino == file.st_ino) {
      return true;
    }
  }
  return false;
}

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Refuses a directory where others can replace the file that was checked by a link or another file.
Result<void> check_directory(const std::string& path) {
  const std::string directory = directory_of(path);
  struct stat found {};
  if (stat(directory.c_str(), &found) != 0) {
    return fail(system_error(errno, "NCCL_SLIME_STATS: cannot look at %s", directory.c_str()));
  }
  const bool trusted = found.st_uid == 0 || found.st_uid == geteuid();
  if (trusted && (found.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  return refuse(
      "%s is reached by a symbolic link, and others may write to %s; name a file there itself, or "
      "another directory",
      path.c_str(), directory.c_str());
}

enum class WriteMode {
  kReplace,
  kInPlace,  // a file without a name: of memfd_create, or removed
  kStream,   // the report is appended: a FIFO, a device, this process's own output
};

struct Target {
  std::string path;
  WriteMode mode = WriteMode::kReplace;
  bool linked = false;
};

// Checks the link at `path` and the file that it leads to.
Result<void> follow(const std::string& path, const struct stat& link, struct stat* found) {
  if (link.st_uid != geteuid() && link.st_uid != 0) {
    return refuse("%s: user %u made this symbolic link; name the file itself", path.c_str(),
                  link.st_uid);
  }
  if (auto checked = check_directory(path); !checked) return checked;
  if (stat(path.c_str(), found) == 0) return {};
  if (errno == ENOENT) {
    return refuse("the symbolic link %s names nothing; name the file itself", path.c_str());
  }
  return fail(system_error(errno, "NCCL_SLIME_STATS: cannot look behind %s", path.c_str()));
}

// A link leads to a regular file. The file must belong to this user, and the directory that it is
// in must be as safe as that of the link.
Result<Target> regular_behind_link(const std::string& path, const struct stat& found) {
  if (found.st_uid != geteuid()) {
    return refuse(
        "%s is a symbolic link to a file that belongs to user %u, and this process is user %u's; "
        "name the file itself",
        path.c_str(), found.st_uid, geteuid());
  }
  // /dev/stdout that a shell has redirected: replacing that file would lose its contents.
  if (is_own_output(found)) return Target{path, WriteMode::kStream, true};
  if (found.st_nlink == 0) return Target{path, WriteMode::kInPlace, true};
  char real[PATH_MAX];
  if (realpath(path.c_str(), real) == nullptr) {
    return fail(system_error(errno, "NCCL_SLIME_STATS: cannot look behind %s", path.c_str()));
  }
  if (auto checked = check_directory(real); !checked) return fail(checked.error());
  return Target{real, WriteMode::kReplace, true};
}

// Decides by the kind of the file at `path` how the report is written.
Result<Target> find_target(const std::string& path) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) {
    if (errno == ENOENT) return Target{path, WriteMode::kReplace};
    return fail(system_error(errno, "NCCL_SLIME_STATS: cannot look at %s", path.c_str()));
  }
  const bool linked = S_ISLNK(found.st_mode);
  if (linked) {
    const struct stat link = found;
    if (auto followed = follow(path, link, &found); !followed) return fail(followed.error());
  }
  if (S_ISREG(found.st_mode)) {
    return linked ? regular_behind_link(path, found)
                  : Result<Target>(Target{path, WriteMode::kReplace});
  }
  if (S_ISFIFO(found.st_mode) || S_ISCHR(found.st_mode))
    return Target{path, WriteMode::kStream, linked};
  return refuse("%s is a %s; name a file, a FIFO or a character device", path.c_str(),
                S_ISDIR(found.st_mode)    ? "directory"
                : S_ISBLK(found.st_mode)  ? "block device"
                : S_ISSOCK(found.st_mode) ? "socket"
                                          : "thing of another kind");
}

// `timeout_ns` limits the whole write if the reader does not read at once.
Result<void> write_all(int fd, const std::string& path, const std::string& text,
                       uint64_t timeout_ns) {
  const Clock& clock = SteadyClock::instance();
  const uint64_t deadline = clock.now_ns() + timeout_ns;
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n >= 0) {
      done += static_cast<size_t>(n);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) {
      return fail(system_error(errno, "write of the counters to %s failed", path.c_str()));
    }
    const uint64_t now = clock.now_ns();
    if (now >= deadline) {
      return refuse("the reader of %s does not read it: %zu of %zu bytes taken in %.0f s",
                    path.c_str(), done, text.size(), static_cast<double>(timeout_ns) / 1e9);
    }
    pollfd room{.fd = fd, .events = POLLOUT, .revents = 0};
    poll(&room, 1, static_cast<int>((deadline - now) / 1000000 + 1));
  }
  return {};
}

// Writes another file beside it first, so that a reader never sees half a report.
Result<void> replace(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".tmp." + std::to_string(getpid());
  // O_EXCL: another user may have put a file or a link there.
  unlink(temporary.c_str());
  Fd file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file) {
    return fail(system_error(errno,
                             "cannot create %s for the counters; NCCL_SLIME_STATS must name a file "
                             "in a directory that this process can write to",
                             temporary.c_str()));
  }
  Result<void> written = write_all(file.get(), temporary, text, 0);
  if (close(file.release()) != 0 && written) {
    written = fail(system_error(errno, "close of %s failed", temporary.c_str()));
  }
  if (written && rename(temporary.c_str(), path.c_str()) != 0) {
    written = fail(system_error(errno, "cannot rename %s to %s", temporary.c_str(), path.c_str()));
  }
  if (!written) unlink(temporary.c_str());
  return written;
}

// O_NONBLOCK: a FIFO without a reader must not make the process wait. O_NOCTTY: a terminal must not
// become this process's.
Result<Fd> open_target(const Target& target, int flags) {
  const int links = target.linked ? 0 : O_NOFOLLOW;
  Fd file(open(target.path.c_str(), flags | links | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (file) return file;
  if (errno == ENXIO) {
    return refuse("nobody reads %s; start its reader before this process ends",
                  target.path.c_str());
  }
  return fail(system_error(errno, "NCCL_SLIME_STATS: cannot open %s", target.path.c_str()));
}

Result<void> stream(const Target& target, const std::string& text) {
  auto file = open_target(target, O_WRONLY | O_APPEND);
  if (!file) return fail(file.error());
  struct stat opened {};
  if (fstat(file->get(), &opened) != 0) return fail(system_error(errno, "fstat failed"));
  // The file may have been replaced since it was checked.
  if (!S_ISFIFO(opened.st_mode) && !S_ISCHR(opened.st_mode) && !is_own_output(opened)) {
    return refuse("%s became another file while it was opened", target.path.c_str());
  }
  // The FIFO is opened for reading too, so that the host process gets no SIGPIPE if the reader
  // closes it meanwhile.
  Fd reader;
  if (S_ISFIFO(opened.st_mode)) {
    auto also = open_target(target, O_RDONLY);
    if (!also) return fail(also.error());
    reader = std::move(*also);
  }
  return write_all(file->get(), target.path, text, times::kStatsReader);
}

// The file has no name that could be replaced, so it is emptied and written.
Result<void> write_in_place(const Target& target, const std::string& text) {
  auto file = open_target(target, O_WRONLY);
  if (!file) return fail(file.error());
  if (ftruncate(file->get(), 0) != 0) {
    return fail(system_error(errno, "NCCL_SLIME_STATS: cannot empty %s", target.path.c_str()));
  }
  return write_all(file->get(), target.path, text, 0);
}

}  // namespace

Result<void> write_stats(const std::string& path, const std::string& text) {
  const auto target = find_target(path);
  if (!target) return fail(target.error());
  switch (target->mode) {
    case WriteMode::kStream:
      return stream(*target, text);
    case WriteMode::kInPlace:
      return write_in_place(*target, text);
    case WriteMode::kReplace:
      break;
  }
  return replace(target->path, text);
}

}  // namespace slime::plugin
