// The counters of this process: log lines, and the file that NCCL_SLIME_STATS names.
#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "collnet/comm/report.h"
#include "engine/fabric.h"

namespace slime::plugin {

// Collects the counters of closed fabrics and CollNet communicators and reports them with those of
// open ones. Threads: any; its mutex guards all members. State calls it, and holds its own mutex
// while it calls report, keep and retire: report writes the file under both, so reports do not mix.
class Stats {
 public:
  void mark_used();                // a connection was made: the next report is worth its lines
  void keep(WorkerReport report);  // of a CollNet communicator that closes
  // `open`: of the CollNet communicators that are open.
  void report(const Fabric& fabric, const std::vector<WorkerReport>& open);
  void retire(const Fabric& fabric);  // keeps the counters of a fabric that is about to close

 private:
  std::vector<RailReport> with_past(const std::vector<RailReport>& now) const;

  std::mutex mutex_;
  std::vector<RailReport> past_;
  std::deque<WorkerReport> past_workers_;  // the newest
  uint64_t forgotten_workers_ = 0;
  bool used_ = false;
  bool write_failed_ = false;  // one warning is enough
};

// %p: process id, %h: host name, %%: a percent sign; anything else stays as it is.
std::string expand_stats_path(const std::string& pattern);
// The content of the file.
struct StatsReport {
  std::vector<RailReport> rails = {};
  std::vector<WorkerReport> workers = {};
  uint64_t forgotten_workers = 0;  // closed before the last 256, whose counters are kept
};
std::string render_stats(const StatsReport& report);  // JSON

// stats_file.cc. The process is the user's, often root's, and the name may lie in a directory where
// others write: nothing is overwritten that is no report. Replaces a regular file at once, so that
// a reader never sees half a report; writes into a FIFO that has a reader, or into a character
// device. Follows a symbolic link only where no other user can have made or changed it, to a file
// of this user's own.
Result<void> write_stats(const std::string& path, const std::string& text);

}  // namespace slime::plugin
