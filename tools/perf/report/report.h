// What was measured, what describes the run, and its two forms: the table, in the columns of
// nccl-tests, and JSON.
#pragma once

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/net/socket.h"
#include "tools/perf/options.h"
#include "tools/perf/words.h"

namespace slime::perf {

// One half of a row: out of place, or in place.
struct Measurement {
  double mean_us = 0;     // per operation, mean over the ranks: the "time" column
  double slowest_us = 0;  // the slowest rank's mean
  double best_us = 0;     // the fastest operation; each one counts as long as its slowest rank took
  double median_us = 0;
  double p99_us = 0;  // of the operations kept, see Samples
  double max_us = 0;  // of all
  double algorithm_gb_s = 0, bus_gb_s = 0,
         best_bus_gb_s = 0;       // 10^9 bytes per second
  uint64_t operations = 0;        // timed
  uint64_t checked = 0;           // operations, these not timed
  std::optional<uint64_t> wrong;  // elements, over all ranks; nullopt: not checked
};

struct Row {
  uint64_t bytes = 0, count = 0;
  DataType type{};
  std::optional<RedOp> op;  // nullopt: "none"
  int root = -1;
  Protocol protocol{};
  int channels = 1;
  Measurement out_of_place, in_place;
};

// One rail of one rank, with the counters that the plugin wrote.
struct RailLine {
  int rank = 0;
  std::string host, device, rail, transport, address;
  uint64_t speed_mbps = 0;
  nlohmann::json counters;  // name -> number
};

struct RunInfo {
  std::string command, plugin_path, plugin_name;
  int api_version = 0;  // of the table that carried the data: net, or CollNet
  int ranks = 0;
  std::string launcher;
  bool direct = false;
  int channels = 0;
  std::string algorithm;                             // ring or collnet
  std::string protocol;                              // as asked for
  nlohmann::json devices = nlohmann::json::array();  // of rank 0, in full
  nlohmann::json members = nlohmann::json::array();  // host, pid and devices of every rank
};

struct Report {
  RunInfo info;
  std::vector<Row> rows;
  std::vector<RailLine> rails;
  std::string rails_note;                              // why there are none
  nlohmann::json processes = nlohmann::json::array();  // CPU seconds of every rank
  bool ended_early = false;                            // somebody asked for it
  std::string error;                                   // empty: the run came to its end
  int exit_code = 0;
};

// The rails' counters, from the file that the plugin writes when NCCL_SLIME_STATS names one.
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

// Rank 0 prints it as the rows come: begin() once, row() for each, end() once.
class Table {
 public:
  explicit Table(FILE* out) : out_(out) {}  // null: print nothing

  void begin(const Options& options, const RunInfo& info);
  void row(const Row& row);
  void end(const Report& report, Collective collective);

 private:
  void half(const Measurement& measurement);
  void spread(const char* which, const Measurement& measurement);
  FILE* const out_;
  bool shows_spread_ = false;  // --duration: what a mean over so long hides
};

// Of all halves that were timed, as nccl-tests: the mean busbw.
double average_bus_gb_s(const std::vector<Row>& rows);
uint64_t wrong_values(const std::vector<Row>& rows);  // halves with a wrong element

// Rails of the same name, transport and host, summed over the ranks that used them.
std::vector<RailLine> sum_rails(const std::vector<RailLine>& rails);

nlohmann::json to_json(const Report& report, const Options& options);

// What each rank adds to the report: the counters of its rails, and what it has used. To be called
// once the plugin has written its counters.
nlohmann::json part_of_report(const CounterFile& counters);

// `parts`: of all ranks, in their order.
Result<void> add_parts(const std::vector<nlohmann::json>& parts, const std::vector<RankInfo>& ranks,
                       Report* report);

}  // namespace slime::perf
