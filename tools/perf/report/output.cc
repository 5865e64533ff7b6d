#include "tools/perf/report/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace slime::perf {

Result<void> JsonFile::open(const std::string& path) {
  path_ = path;
  is_output_ = path == "-" || names_own_output(path);
  if (is_output_) {
    file_.reset(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
    if (file_) return {};
    Error error = system_error(errno, "--json %s: there is no standard output", path.c_str());
    error.status = Status::kConfig;
    return fail(std::move(error));
  }
  // Without O_NONBLOCK the open of a FIFO that nobody reads would wait.
  file_.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666));
  if (!file_) {
    const int code = errno;
    Error error = system_error(code, "--json %s: cannot write there%s", path.c_str(),
                               code == ENXIO ? " (a FIFO or a socket that nobody reads)" : "");
    error.status = Status::kConfig;
    return fail(std::move(error));
  }
  (void)fcntl(file_.get(), F_SETFL, fcntl(file_.get(), F_GETFL) & ~O_NONBLOCK);
  return {};
}

Result<void> JsonFile::write(const std::string& text) {
  struct stat found {};
  const bool regular = !is_output_ && fstat(file_.get(), &found) == 0 && S_ISREG(found.st_mode);
  if (regular && ftruncate(file_.get(), 0) != 0) {
    return fail(system_error(errno, "--json %s: cannot empty it", path_.c_str()));
  }
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(file_.get(), text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(system_error(errno, "--json %s: write failed", path_.c_str()));
    done += static_cast<size_t>(n);
  }
  return {};
}

bool names_own_output(const std::string& path) {
  struct stat own {
  }, named{};
  if (fstat(STDOUT_FILENO, &own) != 0 || stat(path.c_str(), &named) != 0) return false;
  if (S_ISCHR(own.st_mode) && isatty(STDOUT_FILENO) == 0) return false;
  return own.st_dev == named.st_dev && own.st_ino == named.st_ino;
}

}  // namespace slime::perf
