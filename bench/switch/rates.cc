// Packets per second of processor time.
#include <algorithm>
#include <cstdio>

#include "bench/common/statistics.h"
#include "bench/switch/rows.h"

namespace slime::bench {
namespace {

constexpr uint32_t kInFlight = 128;  // packets; well within the sockets' buffers

struct RateRow {
  Load load;
  Samples switch_rate, echo_rate, ratio;  // packets received per second of the thread's time
  double switch_batch = 0, echo_batch = 0;
};

bool measure_rate(const Options& options, RateRow* row) {
  Pair pair;
  if (!open_pair(options, row->load, row->load, 0, &pair)) return false;
  const uint32_t per_round = row->load.children * row->load.slots;
  const uint32_t rounds = options.thousand_packets * 1000 / per_round;
  const double packets = static_cast<double>(rounds) * per_round;
  for (unsigned turn = 0; turn <= options.rounds; ++turn) {
    const uint64_t switch_begin = pair.soft->cpu_ns(0);
    if (!pair.to_switch->run(rounds)) return false;
    const uint64_t switch_end = pair.soft->cpu_ns(0);
    const uint64_t echo_begin = pair.echo->cpu_ns();
    if (!pair.to_echo->run(rounds)) return false;
    const uint64_t echo_end = pair.echo->cpu_ns();
    if (turn == 0) continue;  // warms up
    const double by_switch = packets * 1e9 / static_cast<double>(switch_end - switch_begin);
    const double by_echo = packets * 1e9 / static_cast<double>(echo_end - echo_begin);
    row->switch_rate.add(by_switch);
    row->echo_rate.add(by_echo);
    row->ratio.add(by_switch / by_echo);
  }
  const net::IoTotals totals = pair.soft->io_totals();
  row->switch_batch = static_cast<double>(totals.packets_in) /
                      static_cast<double>(std::max<uint64_t>(totals.batches, 1));
  row->echo_batch = static_cast<double>(pair.echo->packets()) /
                    static_cast<double>(std::max<uint64_t>(pair.echo->batches(), 1));
  return true;
}

nlohmann::json to_json(const RateRow& row) {
  return {{"lanes", row.load.lanes},
          {"children", row.load.children},
          {"switch_packets_per_cpu_s", to_json(row.switch_rate)},
          {"echo_packets_per_cpu_s", to_json(row.echo_rate)},
          {"ratio", to_json(row.ratio)},
          {"switch_batch", row.switch_batch},
          {"echo_batch", row.echo_batch}};
}

}  // namespace

bool run_rates(const Options& options, nlohmann::json* records) {
  std::printf("%-6s %8s %12s %12s %8s %8s %8s   %s\n", "lanes", "children", "switch k/s",
              "echo k/s", "ratio", "best", "worst", "packets a batch");
  for (const uint32_t lanes : {64u, 256u, 360u, 2048u}) {
    for (const uint32_t children : {1u, 2u, 8u}) {
      RateRow row;
      row.load = {.children = children, .slots = kInFlight / children, .lanes = lanes};
      if (!measure_rate(options, &row)) return false;
      std::printf("%-6u %8u %12.0f %12.0f %8.2f %8.2f %8.2f   %.1f, %.1f\n", lanes, children,
                  row.switch_rate.median() / 1e3, row.echo_rate.median() / 1e3, row.ratio.median(),
                  row.ratio.max(), row.ratio.min(), row.switch_batch, row.echo_batch);
      std::fflush(stdout);
      records->push_back(to_json(row));
    }
  }
  std::printf("packets received per second of the thread's processor time; aim: ratio >= %.1f\n",
              kAimRate);
  return true;
}

}  // namespace slime::bench
