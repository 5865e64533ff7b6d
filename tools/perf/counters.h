// The rails' counters, from the file that the plugin writes when NCCL_SLIME_STATS names one.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "base/net/socket.h"

namespace slime::perf {

class CounterFile {
 public:
  // Sets NCCL_SLIME_STATS to a file of our own, unless the user has set it to another than our
  // standard output. Ours has no name: nothing stays behind, however this process ends.
  CounterFile();

  // The user wants them there. The table then goes elsewhere.
  bool for_output() const { return for_output_; }
  // Writes there what the plugin has written.
  void print() const;

  // The array "rails" of what the plugin wrote; fails with the reason for a report.
  Result<nlohmann::json> read() const;

 private:
  std::string path_;
  Fd own_;
  bool for_output_ = false;
};

// {"rails": [...]} -> the array, each entry checked.
Result<nlohmann::json> parse_counters(const std::string& text);

}  // namespace slime::perf
