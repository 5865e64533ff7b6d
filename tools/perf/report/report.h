// What was measured and what describes the run: one JSON document, which --json writes, and of
// which the table, in the columns of nccl-tests, is a view.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/net/socket.h"
#include "tools/perf/options.h"
#include "tools/perf/words.h"

namespace slime::perf {

// The document as it is before the ranks have met. It has rows, each with two halves (figures.h),
// out of place and in place.
nlohmann::json new_report(const Options& options, const std::string& command);
// Adds what is known at the end.
void complete(nlohmann::json* report);

// The rails' counters, from the file that the plugin writes when NCCL_SLIME_STATS names one.
// Thread: the main thread.
class CounterFile {
 public:
  // Sets NCCL_SLIME_STATS to a file of our own, unless the user has set it to another than our
  // standard output. Ours has no name: nothing stays behind, however this process ends.
  CounterFile();

  // The user has named our standard output for the counters. The table then goes to stderr.
  bool for_output() const { return for_output_; }
  // Writes there what the plugin has written.
  Result<void> print() const;

  // What each rank adds to the report: the counters of its rails, or why there are none, and what
  // it has used. To be called once the plugin has written its counters.
  nlohmann::json part_of_report() const;

 private:
  // The array "rails" of what the plugin wrote.
  Result<nlohmann::json> read() const;

  std::string path_;
  Fd own_;
  bool for_output_ = false;
};

// `parts`: of all ranks, in their order. `note`: why there are no rails.
Result<void> add_parts(const std::vector<nlohmann::json>& parts, const std::vector<RankInfo>& ranks,
                       nlohmann::json* report, std::string* note);

// Rank 0 prints it as the rows come: begin() once, row() for each, end() once.
class Table {
 public:
  explicit Table(FILE* out) : out_(out) {}  // null: print nothing

  void begin(const Options& options, const nlohmann::json& report);
  void row(const nlohmann::json& row);
  void end(const nlohmann::json& report, const std::string& rails_note);

 private:
  FILE* const out_;
  bool shows_spread_ = false;  // --duration: what a mean over so long hides
};

// What --json names: a file, or our standard output. Opened before the run, so that an error comes
// at once, and not after an hour. States: closed -> open. Thread: the main thread.
class JsonFile {
 public:
  // Creates it where it is missing; what is in it stays until the report is written. "-" is our
  // standard output, as is a path that names the same, like /dev/stdout.
  Result<void> open(const std::string& path);
  explicit operator bool() const { return static_cast<bool>(file_); }
  Result<void> write(const std::string& text);

 private:
  std::string path_;
  Fd file_;
  bool is_output_ = false;  // ours: what is there already stays
};

// All of `text`, however many calls that takes. The error begins with `what`.
Result<void> write_all(const Fd& file, const std::string& text, const std::string& what);

// Whether a file that the user names is where our standard output goes: a path like /dev/stdout, or
// the file, FIFO or terminal behind it. What is read by a program must not be mixed with the table
// there. Not /dev/null and its kind, where nothing can be mixed.
bool names_own_output(const std::string& path);

}  // namespace slime::perf
