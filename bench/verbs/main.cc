// bench-verbs: the engine over two RDMA ports of this host, beside a loop of bare writes over the
// same ports. One thread has both ends, and the two take turns, so that whatever else the machine
// does disturbs both alike. Counts do not depend on time: they have aims.
#include <getopt.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "bench/verbs/bare_loop.h"
#include "bench/verbs/counts.h"
#include "bench/verbs/rows.h"
#include "test/support/load/engine_pair.h"
#include "transports/verbs/rail.h"

namespace slime::bench {
namespace {

constexpr int kExitMissed = 1, kExitUsage = 2, kExitSkipped = 77;

struct Options {
  std::string devices;
  int rounds = 9;
  uint64_t bytes = 16 << 20;
  uint64_t trips = 200;
  const char* json = nullptr;
};

Port make_port(std::unique_ptr<Rail> rail, const Settings& settings) {
  Port port;
  port.rail = static_cast<verbs::VerbsRail*>(rail.get());
  std::vector<std::unique_ptr<Rail>> rails;
  rails.push_back(std::move(rail));
  port.devices = Devices::of_rails(std::move(rails), settings, SteadyClock::instance());
  return port;
}

// Row after row and over again: a disturbance hits all alike.
bool measure(Ports& ports, const Settings& settings, const Options& options) {
  std::vector<std::unique_ptr<Row>> rows;
  for (const uint32_t message : {64U << 10, 1U << 20}) {
    rows.push_back(make_messages(ports, message, options.bytes));
  }
  rows.push_back(make_full_queue(ports, 4096, options.bytes));
  for (const uint32_t message : {8U, 4096U}) {
    rows.push_back(make_round_trip(ports, settings, message, options.trips));
  }
  for (int round = 0; round < options.rounds; ++round) {
    for (const auto& row : rows) row->round();
    std::fprintf(stderr, "bench-verbs: round %d of %d\n", round + 1, options.rounds);
  }
  nlohmann::json records = nlohmann::json::array();
  bool met = true;
  for (const auto& row : rows) met = row->report(&records) && met;
  const nlohmann::json all = {{"bench", "verbs"}, {"rows", std::move(records)}};
  if (options.json != nullptr) std::ofstream(options.json) << all.dump(1) << '\n';
  return met;
}

int run(const Options& options) {
  Settings settings;
  // Both post as many works with a doorbell: Soft-RoCE loses packets of longer chains, of either.
  settings.max_batch = BareLoop::kChain;
  settings.hca = options.devices.empty() ? "" : "=" + options.devices;
  std::vector<std::string> notes;
  auto rails = test::value_of(verbs::open_verbs_rails(settings, &notes));
  if (rails.size() < 2) {
    for (const std::string& note : notes) std::fprintf(stderr, "  %s\n", note.c_str());
    std::printf("SKIPPED: bench-verbs needs two RDMA ports that are up, and there are %zu\n",
                rails.size());
    return kExitSkipped;
  }
  Ports ports{make_port(std::move(rails[0]), settings), make_port(std::move(rails[1]), settings)};
  count_calls(ports.from.rail->nic().context());
  if (measure(ports, settings, options)) return 0;
  std::printf(
      "a count misses its aim: doorbells 0.07 and completions 0.1 for a work, packets 1.05 "
      "of bare\n");
  return kExitMissed;
}

int parse_and_run(int argc, char** argv) {
  Options options;
  const option names[] = {
      {"devices", required_argument, nullptr, 'd'}, {"rounds", required_argument, nullptr, 'r'},
      {"bytes", required_argument, nullptr, 'b'},   {"trips", required_argument, nullptr, 't'},
      {"json", required_argument, nullptr, 'j'},    {nullptr, 0, nullptr, 0}};
  for (int option; (option = getopt_long(argc, argv, "", names, nullptr)) != -1;) {
    const auto number = [] { return std::strtoull(optarg, nullptr, 10); };
    switch (option) {
      case 'd':
        options.devices = optarg;
        break;
      case 'r':
        options.rounds = static_cast<int>(std::max<uint64_t>(number(), 1));
        break;
      case 'b':
        options.bytes = std::max<uint64_t>(number(), 1);
        break;
      case 't':
        options.trips = std::max<uint64_t>(number(), 1);
        break;
      case 'j':
        options.json = optarg;
        break;
      default:
        std::fprintf(stderr,
                     "usage: bench-verbs [--devices NAME,NAME] [--rounds N] [--bytes N] [--trips N]"
                     " [--json FILE]\n"
                     "  exit code 0, 1 a count misses its aim, 2 usage, 77 fewer than two ports\n");
        return kExitUsage;
    }
  }
  return run(options);
}

}  // namespace
}  // namespace slime::bench

int main(int argc, char** argv) { return slime::bench::parse_and_run(argc, argv); }
