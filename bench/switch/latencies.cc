// Microseconds per round.

#include <cstdio>

#include "base/clock.h"
#include "bench/common/statistics.h"
#include "bench/switch/rows.h"

namespace slime::bench {
namespace {

constexpr unsigned kRounds = 300;  // a turn
constexpr uint32_t kBusyPollUs = 100;

struct LatencyRow {
  const char* name;
  uint32_t busy_poll_us;
  uint32_t echo_children;
  Samples switch_us, echo_us, ratio;  // the medians of each turn
};

bool time_rounds(Children& children, unsigned count, double* median_us) {
  Samples samples;
  for (unsigned i = 0; i < count; ++i) {
    const uint64_t begin = SteadyClock::instance().now_ns();
    if (!children.run(1)) return false;
    samples.add(static_cast<double>(SteadyClock::instance().now_ns() - begin) / 1000);
  }
  *median_us = samples.median();
  return true;
}

bool measure_latency(const Options& options, LatencyRow* row) {
  const Load load{.children = 2, .slots = 4, .lanes = 256};
  Load echo_load = load;
  echo_load.children = row->echo_children;
  Pair pair;
  if (!open_pair(options, load, echo_load, row->busy_poll_us, &pair)) return false;
  for (unsigned turn = 0; turn <= options.rounds; ++turn) {
    double by_switch = 0, by_echo = 0;
    if (!time_rounds(*pair.to_switch, kRounds, &by_switch)) return false;
    if (!time_rounds(*pair.to_echo, kRounds, &by_echo)) return false;
    if (turn == 0) continue;
    row->switch_us.add(by_switch);
    row->echo_us.add(by_echo);
    row->ratio.add(by_switch / by_echo);
  }
  return true;
}

nlohmann::json to_json(const LatencyRow& row) {
  return {{"mode", row.name},
          {"switch_us", to_json(row.switch_us)},
          {"echo_us", to_json(row.echo_us)},
          {"ratio", to_json(row.ratio)}};
}

}  // namespace

bool run_latencies(const Options& options, nlohmann::json* records) {
  std::printf("\n%-44s %10s %10s %8s\n", "4 KiB round of 2 children, us", "switch", "echo",
              "ratio");
  LatencyRow rows[] = {{"echo to both, asleep", 0, 2, {}, {}, {}},
                       {"echo to one, asleep", 0, 1, {}, {}, {}},
                       {"echo to both, polling", kBusyPollUs, 2, {}, {}, {}},
                       {"echo to one, polling", kBusyPollUs, 1, {}, {}, {}}};
  for (LatencyRow& row : rows) {
    if (!measure_latency(options, &row)) return false;
    std::printf("%-44s %10.1f %10.1f %8.2f\n", row.name, row.switch_us.median(),
                row.echo_us.median(), row.ratio.median());
    std::fflush(stdout);
    records->push_back(to_json(row));
  }
  std::printf("aim: ratio <= %.1f\n", kAimLatency);
  return true;
}

}  // namespace slime::bench
