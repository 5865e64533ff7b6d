// What was measured: rows of the table, and what describes the run.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/perf/words.h"

namespace slime::perf {

// One half of a row: out of place, or in place.
struct Measurement {
  double mean_us = 0;     // per operation, mean over the ranks: the "time" column
  double slowest_us = 0;  // the slowest rank's mean
  double best_us = 0;     // the fastest operation; each one counts as long as its slowest rank took
  double median_us = 0;
  double p99_us = 0;  // of the operations kept, see samples.h
  double max_us = 0;  // of all
  double algorithm_gb_s = 0, bus_gb_s = 0, best_bus_gb_s = 0;  // 10^9 bytes per second
  uint64_t operations = 0;                                     // timed
  uint64_t checked = 0;                                        // operations, these not timed
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

}  // namespace slime::perf
