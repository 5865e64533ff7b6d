// The report's JSON document, and the file that it goes to. The counters are in counters.cc, the
// table is in table.cc.
#include "tools/perf/report/report.h"

#include <fcntl.h>
#include <slime_version.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "settings/settings.h"
#include "tools/common/machine.h"

namespace slime::perf {

using nlohmann::json;

json new_report(const Options& options, const std::string& command) {
  const json nothing = json::array();
  return {{"tool", "slime-perf"},
          {"version", SLIME_VERSION},
          {"commit", SLIME_COMMIT},
          {"command", command},
          {"collective", name_of(options.collective)},
          {"launcher", ""},
          {"ranks", 0},
          {"members", nothing},  // host, pid and devices of every rank
          {"plugin", {{"path", ""}, {"name", ""}, {"api_version", 0}, {"devices", nothing}}},
          {"algorithm", name_of(options.algorithm)},
          {"buffers", "staged"},
          {"channels", 0},
          {"protocol", ""},  // as asked for
          {"iterations", options.iterations},
          {"warmups", options.warmups},
          {"checks", options.checks},
          {"duration_s", options.duration_s},
          {"rows", nothing},
          {"rails", nothing},
          {"processes", nothing},  // CPU seconds of every rank
          {"ended_early", false},
          {"error", nullptr},
          {"exit_code", 0}};
}

void complete(json* report) {
  const time_t now = time(nullptr);
  tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  (*report)["time"] = text;
  (*report)["machine"] = tools::to_json(tools::describe_machine());
  (*report)["environment"] = process_environment();
  // As nccl-tests: of all halves that were timed, the mean busbw.
  double sum = 0, timed = 0;
  uint64_t wrong = 0;  // halves with a wrong element
  for (const json& row : (*report)["rows"]) {
    for (const json& half : {row["out_of_place"], row["in_place"]}) {
      sum += half["busbw_GBps"].get<double>();
      timed += half["operations"] > 0 ? 1 : 0;
      wrong += half["wrong"].is_number() && half["wrong"] > 0 ? 1 : 0;
    }
  }
  (*report)["average_busbw_GBps"] = timed > 0 ? sum / timed : 0;
  (*report)["out_of_bounds"] = wrong;
}

Result<void> JsonFile::open(const std::string& path) {
  path_ = path;
  is_output_ = path == "-" || names_own_output(path);
  // Without O_NONBLOCK the open of a FIFO that nobody reads would wait.
  constexpr int kFlags = O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  file_ = Fd(is_output_ ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                        : ::open(path.c_str(), kFlags, 0666));
  if (file_) {
    if (!is_output_) (void)fcntl(file_.get(), F_SETFL, fcntl(file_.get(), F_GETFL) & ~O_NONBLOCK);
    return {};
  }
  const int code = errno;
  Error error = system_error(code, "--json %s: %s%s", path.c_str(),
                             is_output_ ? "there is no standard output" : "cannot write there",
                             code == ENXIO ? " (a FIFO or a socket that nobody reads)" : "");
  error.status = Status::kConfig;
  return fail(std::move(error));
}

Result<void> JsonFile::write(const std::string& text) {
  struct stat found {};
  const bool regular = !is_output_ && fstat(file_.get(), &found) == 0 && S_ISREG(found.st_mode);
  if (regular && ftruncate(file_.get(), 0) != 0) {
    return fail(system_error(errno, "--json %s: cannot empty it", path_.c_str()));
  }
  auto written = write_all(file_, text, "--json " + path_);
  // Some file systems (NFS, quotas) report only here that they had no room.
  if (written && ::close(file_.release()) != 0) {
    return fail(system_error(errno, "--json %s: close failed", path_.c_str()));
  }
  return written;
}

Result<void> write_all(const Fd& file, const std::string& text, const std::string& what) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(file.get(), text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(system_error(errno, "%s: write failed", what.c_str()));
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
