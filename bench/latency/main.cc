// bench-latency: 8 bytes there and back, by plain sockets and by the plugin's isend and irecv, by
// turns between the same two processes. With --sizes: messages of these by the plugin, and by the
// system calls of NCCL's own socket transport.
#include <getopt.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/common/statistics.h"
#include "bench/common/two_processes.h"
#include "bench/latency/modes.h"
#include "bench/latency/networks.h"

namespace slime::bench {
namespace {

constexpr double kAimRatio = 1.5;
constexpr unsigned kLimitS = 120;
constexpr const char* kNames[] = {"TCP, polling", "TCP, blocking", "plugin, isend/irecv"};
constexpr size_t kModes = std::size(kNames);

struct Options {
  unsigned rounds = 20;
  unsigned round_trips = 2000;
  std::string plugin;
  const char* json = nullptr;
};

struct Mode {
  Samples half_us;        // all round trips
  Samples round_best_us;  // the best of each round
  Samples round_median_us;
};

// Beside the program: build/bin and build/lib.
std::string default_plugin(const char* program) {
  const std::string path = program;
  const size_t slash = path.rfind('/');
  return (slash == std::string::npos ? "." : path.substr(0, slash)) + "/../lib/libnet-slime.so";
}

struct Sockets {
  SocketPair polling = make_loopback_pair();
  SocketPair blocking = make_loopback_pair();
  SocketPair handles = make_loopback_pair();
};

bool run_rank(int rank, const Options& options, const Sockets& sockets, Barrier* barrier,
              std::array<Mode, kModes>* modes) {
  const auto own = static_cast<size_t>(rank);
  const std::array<std::unique_ptr<PingPong>, kModes> ends = {
      make_polling(rank, sockets.polling.ends[own]),
      make_blocking(rank, sockets.blocking.ends[own]),
      make_network(rank, sockets.handles.ends[own], load_plugin(options.plugin), kMessageBytes)};
  if (ends.back() == nullptr) return false;
  for (unsigned round = 0; round <= options.rounds; ++round) {
    for (size_t i = 0; i < kModes; ++i) {
      barrier->wait();
      std::vector<uint64_t> ns;
      ns.reserve(options.round_trips);
      if (!ends[i]->run(options.round_trips, &ns)) return false;
      if (rank != 0 || round == 0) continue;  // round 0 warms up
      Samples samples;
      for (const uint64_t one : ns) {
        samples.add(static_cast<double>(one) / 2000);
        (*modes)[i].half_us.add(static_cast<double>(one) / 2000);
      }
      (*modes)[i].round_best_us.add(samples.min());
      (*modes)[i].round_median_us.add(samples.median());
    }
    if (rank == 0 && round % 5 == 0) {
      std::fprintf(stderr, "bench-latency: round %u of %u\n", round, options.rounds);
    }
  }
  barrier->wait();  // nobody closes while the other still polls
  return true;
}

void print(const std::array<Mode, kModes>& modes) {
  std::printf("%-24s %10s %16s %10s %10s\n", "8 B, half round trip, us", "best", "best median",
              "median", "p99");
  for (size_t i = 0; i < kModes; ++i) {
    std::printf("%-24s %10.2f %16.2f %10.2f %10.2f\n", kNames[i], modes[i].half_us.min(),
                modes[i].round_median_us.min(), modes[i].half_us.median(),
                modes[i].half_us.quantile(0.99));
  }
  std::printf(
      "plugin to polling: %.2f of the best, %.2f of the best rounds' medians (aim <= %.1f)\n",
      modes[2].half_us.min() / modes[0].half_us.min(),
      modes[2].round_median_us.min() / modes[0].round_median_us.min(), kAimRatio);
}

nlohmann::json to_json(const std::array<Mode, kModes>& modes) {
  nlohmann::json records = nlohmann::json::array();
  for (size_t i = 0; i < kModes; ++i) {
    records.push_back({{"mode", kNames[i]},
                       {"half_round_trip_us", to_json(modes[i].half_us)},
                       {"round_best_us", to_json(modes[i].round_best_us)},
                       {"round_median_us", to_json(modes[i].round_median_us)},
                       {"p99_us", modes[i].half_us.quantile(0.99)}});
  }
  return {{"bench", "latency"}, {"aim_ratio", kAimRatio}, {"rows", std::move(records)}};
}

// "8,65536": each at least 8, as messages are numbered, and at most 64 MiB. Empty: it is none.
std::vector<size_t> parse_sizes(const char* text) {
  std::vector<size_t> sizes;
  for (const char* at = text; at != nullptr;) {
    char* end = nullptr;
    const size_t size = std::strtoull(at, &end, 10);
    if (end == at || (*end != ',' && *end != '\0') || size < 8 || size > 64 << 20) return {};
    sizes.push_back(size);
    at = *end == ',' ? end + 1 : nullptr;
  }
  return sizes;
}

int usage() {
  std::fprintf(stderr,
               "usage: bench-latency [--quick] [--rounds N] [--plugin FILE] [--json FILE]\n"
               "                     [--sizes BYTES,... [--peer-netns FILE]]\n");
  return 2;
}

int parse_and_run(int argc, char** argv) {
  Options options;
  NetworksOptions networks;
  options.plugin = default_plugin(argv[0]);
  const option names[] = {{"json", required_argument, nullptr, 'j'},
                          {"plugin", required_argument, nullptr, 'p'},
                          {"rounds", required_argument, nullptr, 'r'},
                          {"quick", no_argument, nullptr, 'q'},
                          {"sizes", required_argument, nullptr, 's'},
                          {"peer-netns", required_argument, nullptr, 'n'},
                          {nullptr, 0, nullptr, 0}};
  for (int option; (option = getopt_long(argc, argv, "", names, nullptr)) != -1;) {
    switch (option) {
      case 'j':
        options.json = optarg;
        break;
      case 'p':
        options.plugin = optarg;
        break;
      case 'r':
        options.rounds = static_cast<unsigned>(std::strtoul(optarg, nullptr, 10));
        break;
      case 'q':
        options.rounds = 5;
        break;
      case 's':
        networks.sizes = parse_sizes(optarg);
        if (networks.sizes.empty()) return usage();
        break;
      case 'n':
        networks.peer_netns = optarg;
        break;
      default:
        return usage();
    }
  }
  if (!networks.sizes.empty()) {
    networks.plugin = options.plugin;
    networks.rounds = options.rounds;
    networks.json = options.json;
    return compare_networks(networks);
  }
  const Sockets sockets;
  auto* barrier = make_shared_memory<Barrier>();
  if (barrier == nullptr) return 1;
  std::array<Mode, kModes> modes;
  if (!run_two_processes(
          kLimitS, [&](int rank) { return run_rank(rank, options, sockets, barrier, &modes); })) {
    return 1;
  }
  print(modes);
  if (options.json) std::ofstream(options.json) << to_json(modes).dump(1) << '\n';
  return 0;
}

}  // namespace
}  // namespace slime::bench

int main(int argc, char** argv) { return slime::bench::parse_and_run(argc, argv); }
