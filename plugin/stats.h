// The counters of this process: log lines, and the file that NCCL_SLIME_STATS names.
#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "collnet/comm/report.h"
#include "devices/devices.h"

namespace slime::plugin {

// Collects the counters of closed devices and CollNet communicators, and reports them with those of
// open ones.
//
// Threads: any; its mutex guards all members. State holds its own mutex while it calls report, keep
// and retire. report() writes the file under both mutexes, so reports do not mix.
class Stats {
 public:
  void mark_used();                // a connection was made, so the next report writes its lines
  void keep(WorkerReport report);  // of a CollNet communicator that closes
  // `open` has the reports of CollNet communicators that are open.
  void report(const Devices& devices, const std::vector<WorkerReport>& open);
  void retire(const Devices& devices);  // keeps the counters of devices that are about to close

 private:
  std::mutex mutex_;
  std::vector<RailReport> past_;
  std::vector<InterfaceReport> past_interfaces_;
  std::deque<WorkerReport> past_workers_;  // the newest ones
  uint64_t forgotten_workers_ = 0;
  bool used_ = false;
  bool write_failed_ = false;  // one warning is enough
};

// %p: process id, %h: host name, %%: a percent sign; anything else stays as it is.
std::string expand_stats_path(const std::string& pattern);
// The content of the file.
struct StatsReport {
  std::vector<RailReport> rails = {};
  std::vector<InterfaceReport> interfaces = {};
  std::vector<WorkerReport> workers = {};
  uint64_t forgotten_workers = 0;  // closed before the last 256, whose counters are kept
};
std::string render_stats(const StatsReport& report);  // JSON

// stats_file.cc. The process is often root's, and others may write in the directory of the file, so
// only a file that is a report is overwritten. A regular file is replaced at once, so that a reader
// never sees half a report. A FIFO that has a reader, and a character device, are written into. A
// symbolic link is followed only if no other user can have made or changed it, and if the file
// belongs to this user.
Result<void> write_stats(const std::string& path, const std::string& text);

}  // namespace slime::plugin
