// The table and the JSON of slime-perf p2p.
#pragma once

#include <cstdio>
#include <optional>
#include <vector>

#include "tools/perf/p2p/load.h"
#include "tools/perf/p2p/options.h"

namespace slime::perf::p2p {

struct Row {
  uint64_t size = 0;
  uint32_t rails = 0;  // of the engines' link
  Sample engine;
  std::optional<Sample> raw;  // of the plain loop
  double prepare_ns = 0;      // an assignment, of its plans
  uint64_t wrong = 0;         // bytes
};

void print_head(FILE* to, const Options& options);
void print_row(FILE* to, const Options& options, const Row& row);
Result<void> write_json(const Options& options, const std::vector<Row>& rows);

}  // namespace slime::perf::p2p
