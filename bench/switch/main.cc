// bench-switch: what the software switch makes of a processor's time, against a bare echo of the
// same packets, by turns in one process. The echo receives a packet and sends one; the switch with
// n children receives n and sends n per round.
#include <getopt.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "bench/switch/rows.h"

namespace slime::bench {
namespace {

int parse_and_run(int argc, char** argv) {
  Options options;
  const option names[] = {
      {"json", required_argument, nullptr, 'j'}, {"rounds", required_argument, nullptr, 'r'},
      {"quick", no_argument, nullptr, 'q'},      {"no-segmentation", no_argument, nullptr, 'n'},
      {"help", no_argument, nullptr, 'h'},       {nullptr, 0, nullptr, 0}};
  for (int option; (option = getopt_long(argc, argv, "", names, nullptr)) != -1;) {
    switch (option) {
      case 'j':
        options.json = optarg;
        break;
      case 'r':
        options.rounds = static_cast<unsigned>(std::strtoul(optarg, nullptr, 10));
        break;
      case 'q':
        options.rounds = 3;
        options.thousand_packets = 20;
        break;
      case 'n':
        options.segmentation = false;
        break;
      default:
        std::fprintf(
            option == 'h' ? stdout : stderr,
            "usage: bench-switch [--quick] [--rounds N] [--no-segmentation] [--json FILE]\n");
        return option == 'h' ? 0 : 2;
    }
  }
  nlohmann::json rates = nlohmann::json::array(), latencies = nlohmann::json::array();
  if (!run_rates(options, &rates) || !run_latencies(options, &latencies)) return 1;
  if (options.json) {
    const nlohmann::json whole = {{"bench", "switch"},
                                  {"aim_rate_ratio", kAimRate},
                                  {"aim_latency_ratio", kAimLatency},
                                  {"rates", std::move(rates)},
                                  {"latencies", std::move(latencies)}};
    std::ofstream(options.json) << whole.dump(1) << '\n';
  }
  return 0;
}

}  // namespace
}  // namespace slime::bench

int main(int argc, char** argv) { return slime::bench::parse_and_run(argc, argv); }
