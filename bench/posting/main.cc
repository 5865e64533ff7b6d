// bench-posting: how a posting loop treats its NICs, one rule after the other, and the engine last.
// Simulated NICs in virtual time: counters are exact, and the same for the same seed.
#include <getopt.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/posting/model.h"

namespace slime::bench {
namespace {

struct Row {
  const char* name;
  const char* flips;
  Flags flags;
};

std::vector<Row> ladder() {
  std::vector<Row> rows;
  Flags flags;
  const auto add = [&](const char* name, const char* flips) {
    rows.push_back({name, flips, flags});
  };
  add("1 NIC, works parked when refused", "");
  flags.nics = 32;
  add("32 NICs, round robin", "nics 32");
  flags.threads = 8;
  add("8 threads", "threads 8");
  flags.batch = 16;
  add("batches of 16", "batch 16");
  flags.lazy = true;
  add("lazy", "lazy");
  flags.cap = 4096;
  add("bounded", "cap 4096");
  flags.pool = true;
  add("works from a pool", "pool");
  flags.credits = true;
  add("credits", "credits");
  flags.credits = false;
  flags.chain = true;
  add("chained, without credits", "chain (instead of credits)");
  flags.credits = true;
  add("chained, with credits", "chain");
  flags.watermark = 16;
  add("watermark 16", "watermark 16");
  flags.watermark = 32;
  add("watermark 32", "watermark 32");
  return rows;
}

struct Options {
  RunLength length;
  uint64_t seed = 1;
  const char* json = nullptr;
};

void print_header(const Regime& regime) {
  std::printf("\n%s: post %llu, doorbell %llu, refused %llu, poll %llu ns\n", regime.name,
              static_cast<unsigned long long>(regime.post),
              static_cast<unsigned long long>(regime.doorbell),
              static_cast<unsigned long long>(regime.refused),
              static_cast<unsigned long long>(regime.poll));
  std::printf("  %-34s %10s %10s %8s %8s %9s %7s\n", "row", "doorbells", "futile", "polls",
              "allocs", "queue", "% of");
  std::printf("  %-34s %10s %10s %8s %8s %9s %7s\n", "", "/work", "/work", "/work", "/work", "max",
              "line");
}

void print_row(const char* name, const Outcome& outcome) {
  std::printf("  %-34s %10.3f %10.3f %8.2f %8.3f %8llu%s %7.1f\n", name,
              outcome.per_work(outcome.doorbells), outcome.per_work(outcome.futile),
              outcome.per_work(outcome.polls), outcome.per_work(outcome.allocations),
              static_cast<unsigned long long>(outcome.depth_max), outcome.bounded ? " " : "+",
              outcome.line_share * 100);
}

nlohmann::json to_json(const Regime& regime, const char* name, const char* flips,
                       const Outcome& outcome) {
  return {{"regime", regime.name},
          {"row", name},
          {"flips", flips},
          {"works", outcome.works},
          {"doorbells_per_work", outcome.per_work(outcome.doorbells)},
          {"futile_per_work", outcome.per_work(outcome.futile)},
          {"polls_per_work", outcome.per_work(outcome.polls)},
          {"allocations_per_work", outcome.per_work(outcome.allocations)},
          {"queue_depth_max", outcome.depth_max},
          {"queue_bounded", outcome.bounded},
          {"line_share", outcome.line_share}};
}

struct EngineRow {
  const char* name;
  Outcome (*run)(const Shape&, const Regime&, const RunLength&, uint64_t);
  Shape shape;
};
// Threads share nothing. So the rows of 8 threads give the counts per work of any number of threads
// with 4 NICs each.
constexpr EngineRow kEngineRows[] = {
    {"engine: works into its Link", run_engine_link, {8, kGroupNics}},
    {"engine: isend and irecv", run_engine_comms, {8, kGroupNics}},
    {"libslime: writes of pages", run_peer_writes, {8, kGroupNics}},
    {"libslime: reads of pages", run_peer_reads, {8, kGroupNics}},
    {"one thread, 8 NICs: Link", run_engine_link, {1, 8}},
    {"one thread, 16 NICs: Link", run_engine_link, {1, 16}},
    {"one thread, 32 NICs: Link", run_engine_link, {1, 32}},
    {"one thread, 8 NICs: isend, irecv", run_engine_comms, {1, 8}},
    {"one thread, 16 NICs: isend, irecv", run_engine_comms, {1, 16}},
    {"one thread, 32 NICs: isend, irecv", run_engine_comms, {1, 32}},
};

// False: a second run of the same seed was not the same.
bool run(const Options& options) {
  nlohmann::json records = nlohmann::json::array();
  bool repeats = true;
  for (const Regime& regime : kRegimes) {
    print_header(regime);
    for (const Row& row : ladder()) {
      std::fprintf(stderr, "bench-posting: %s, %s\n", regime.name, row.name);
      const Outcome outcome = run_ladder_row(row.flags, regime, options.length);
      print_row(row.name, outcome);
      records.push_back(to_json(regime, row.name, row.flips, outcome));
    }
    for (const EngineRow& row : kEngineRows) {
      std::fprintf(stderr, "bench-posting: %s, %s\n", regime.name, row.name);
      const Outcome outcome = row.run(row.shape, regime, options.length, options.seed);
      repeats &= outcome == row.run(row.shape, regime, options.length, options.seed);
      print_row(row.name, outcome);
      records.push_back(to_json(regime, row.name, "", outcome));
    }
  }
  std::printf(
      "\n+: no bound; it grows for as long as the run lasts (here %llu works per NIC counted)\n",
      static_cast<unsigned long long>(options.length.counted));
  std::printf("the engine's rows, run twice from seed %llu: %s\n",
              static_cast<unsigned long long>(options.seed),
              repeats ? "the same to the last bit" : "THEY DIFFER");
  if (options.json) {
    const nlohmann::json whole = {{"bench", "posting"},
                                  {"seed", options.seed},
                                  {"repeats", repeats},
                                  {"rows", std::move(records)}};
    std::ofstream(options.json) << whole.dump(1) << '\n';
  }
  return repeats;
}

int parse_and_run(int argc, char** argv) {
  Options options;
  const option names[] = {{"json", required_argument, nullptr, 'j'},
                          {"seed", required_argument, nullptr, 's'},
                          {"quick", no_argument, nullptr, 'q'},
                          {nullptr, 0, nullptr, 0}};
  for (int option; (option = getopt_long(argc, argv, "", names, nullptr)) != -1;) {
    switch (option) {
      case 'j':
        options.json = optarg;
        break;
      case 's':
        options.seed = std::strtoull(optarg, nullptr, 0);
        break;
      case 'q':
        options.length.counted = 500;
        break;
      default:
        std::fprintf(stderr, "usage: bench-posting [--quick] [--seed N] [--json FILE]\n");
        return 2;
    }
  }
  return run(options) ? 0 : 1;
}

}  // namespace
}  // namespace slime::bench

int main(int argc, char** argv) { return slime::bench::parse_and_run(argc, argv); }
