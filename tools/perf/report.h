// The table, in the columns of nccl-tests, and the JSON form of everything.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/perf/options.h"
#include "tools/perf/result.h"

namespace slime::perf {

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

}  // namespace slime::perf
