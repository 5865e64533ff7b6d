// The counters of this process: log lines, and the file that NCCL_SLIME_STATS names.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "engine/fabric.h"

namespace slime::plugin {

class Stats {
 public:
  void mark_used();  // a connection was made: the next report is worth its lines
  void report(const Fabric& fabric);
  void retire(const Fabric& fabric);  // keeps the counters of a fabric that is about to close

 private:
  std::vector<RailReport> with_past(const std::vector<RailReport>& now) const;

  std::mutex mutex_;
  std::vector<RailReport> past_;
  bool used_ = false;
  bool write_failed_ = false;  // one warning is enough
};

// %p: process id, %h: host name, %%: a percent sign; anything else stays as it is.
std::string expand_stats_path(const std::string& pattern);
std::string render_stats(const std::vector<RailReport>& rails);  // JSON
Result<void> write_stats(const std::string& path, const std::string& text);

}  // namespace slime::plugin
