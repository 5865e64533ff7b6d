// bench-stream: the limit that a collective over TCP is held against.
#include <getopt.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/common/statistics.h"
#include "bench/stream/exchange.h"

namespace slime::bench {
namespace {

struct Options {
  std::vector<size_t> sizes = {1 << 20, 4 << 20, 16 << 20, 64 << 20};
  size_t bytes_per_size = size_t{64} << 20;
  const char* json = nullptr;
};

unsigned operations_for(const Options& options, size_t bytes) {
  return static_cast<unsigned>(std::clamp<size_t>(options.bytes_per_size / bytes, 2, 100));
}

double gigabytes(size_t bytes, double seconds) {
  return static_cast<double>(bytes) / seconds / 1e9;
}

bool measure(const Options& options, const Variant& variant, size_t bytes,
             nlohmann::json* records) {
  const Exchange exchange = run_exchange(variant, bytes, operations_for(options, bytes));
  if (!exchange.ok) return false;
  Samples samples;
  double sum = 0;
  for (const double seconds : exchange.seconds) {
    samples.add(seconds);
    sum += seconds;
  }
  const double mean = sum / static_cast<double>(samples.count());
  std::printf("%-44s %10s %8.3f %8.3f %8.3f\n", variant.name().c_str(),
              (std::to_string(bytes >> 20) + " MiB").c_str(), gigabytes(bytes, samples.min()),
              gigabytes(bytes, samples.median()), gigabytes(bytes, mean));
  std::fflush(stdout);
  records->push_back({{"variant", variant.name()},
                      {"walks_memory", variant.walks_memory},
                      {"size", bytes},
                      {"best_us", samples.min() * 1e6},
                      {"median_us", samples.median() * 1e6},
                      {"mean_us", mean * 1e6}});
  return true;
}

int run(const Options& options) {
  std::printf("%-44s %10s %8s %8s %8s\n", "GB/s per direction, both at once", "operation", "best",
              "median", "mean");
  nlohmann::json records = nlohmann::json::array();
  for (const Variant& variant : all_variants()) {
    for (const size_t bytes : options.sizes) {
      if (!measure(options, variant, bytes, &records)) return 1;
    }
  }
  if (options.json) {
    const nlohmann::json whole = {{"bench", "stream"}, {"rows", std::move(records)}};
    std::ofstream(options.json) << whole.dump(1) << '\n';
  }
  return 0;
}

int parse_and_run(int argc, char** argv) {
  Options options;
  const option names[] = {{"json", required_argument, nullptr, 'j'},
                          {"mib", required_argument, nullptr, 'm'},
                          {"quick", no_argument, nullptr, 'q'},
                          {nullptr, 0, nullptr, 0}};
  for (int option; (option = getopt_long(argc, argv, "", names, nullptr)) != -1;) {
    switch (option) {
      case 'j':
        options.json = optarg;
        break;
      case 'm':
        options.bytes_per_size = std::strtoull(optarg, nullptr, 10) << 20;
        break;
      case 'q':
        options.bytes_per_size = size_t{16} << 20;
        break;
      default:
        std::fprintf(stderr,
                     "usage: bench-stream [--quick] [--mib N] [--json FILE]\n"
                     "  --mib N   moved per direction, variant and size of operation\n");
        return 2;
    }
  }
  return run(options);
}

}  // namespace
}  // namespace slime::bench

int main(int argc, char** argv) { return slime::bench::parse_and_run(argc, argv); }
