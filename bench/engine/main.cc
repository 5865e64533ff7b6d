// bench-engine: what the engine costs the processor, measured over rails that cost next to nothing.
#include <getopt.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/common/statistics.h"
#include "bench/engine/loads.h"
#include "bench/engine/threads.h"

namespace slime::bench {
namespace {

constexpr double kAimNs = 50;

struct Row {
  std::string name;
  bool has_aim;
  std::unique_ptr<Load> load;
  Samples sender, receiver;
};

std::string count_of(uint32_t rails) {
  return std::to_string(rails) + (rails == 1 ? " rail" : " rails");
}

std::vector<Row> make_rows() {
  std::vector<Row> rows;
  const auto add = [&rows](std::string name, bool has_aim, std::unique_ptr<Load> load) {
    rows.push_back({std::move(name), has_aim, std::move(load), {}, {}});
  };
  add("the null rail itself, 16 works per doorbell", false, make_rail_load(16));
  add("PostQueue, 16 works per flush", false, make_queue_load(16));
  const auto rail_counts = {1u, 4u, 8u, 16u, 32u};
  for (const uint32_t rails : rail_counts) {
    add("Link, 16 works per rail and progress, " + count_of(rails), true,
        make_link_load(rails, rails * 16));
  }
  for (const uint32_t rails : rail_counts) {
    add("Link, 64 works per progress, " + count_of(rails), true, make_link_load(rails, 64));
  }
  for (const uint32_t rails : rail_counts) {
    add("isend/test, 64 stripes, " + count_of(rails), true, make_message_load(rails, 64));
  }
  add("isend/test, 1 stripe, 1 rail", true, make_message_load(1, 1));
  add("isend/test, 1 stripe, 4 rails", true, make_message_load(4, 1));
  add("isend/test, 1 stripe, 16 rails", true, make_message_load(16, 1));
  add("isend/test, 8 B eager, 1 rail", false, make_eager_load());
  return rows;
}

// Row after row and over again, so that whatever else the machine does disturbs all alike.
void measure(std::vector<Row>& rows, double seconds) {
  constexpr int kPieces = 50;
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (int round = 0; round < 2 || Clock::now() < end; ++round) {
    for (Row& row : rows) {
      for (int i = 0; i < kPieces; ++i) {
        const Cost cost = row.load->run_piece();
        if (round == 0) continue;  // caches and pools get warm
        row.sender.add(cost.sender);
        if (cost.receiver > 0) row.receiver.add(cost.receiver);
      }
    }
  }
}

void print(const std::vector<Row>& rows) {
  std::printf("%-46s %24s   %24s\n", "ns per work, one core", "sender min/median/max",
              "receiver min/median/max");
  for (const Row& row : rows) {
    std::printf("%-46s %7.1f %7.1f %8.0f", row.name.c_str(), row.sender.min(), row.sender.median(),
                row.sender.max());
    if (row.receiver.count() > 0) {
      std::printf("   %7.1f %7.1f %8.0f", row.receiver.min(), row.receiver.median(),
                  row.receiver.max());
    } else {
      std::printf("   %24s", "");
    }
    if (row.has_aim) std::printf("   aim <= %.0f", kAimNs);
    std::printf("\n");
  }
}

void print_threads(const std::vector<ThreadsRow>& rows) {
  std::printf(
      "\nns per work; threads with a link of their own over %u rails each, isend/test, 64 "
      "stripes; %u cores\n",
      kRailsPerThread, core_count());
  std::printf("%-12s %24s   %24s   %24s %12s\n", "", "sender min/median/max",
              "receiver min/median/max", "both ends, CPU time", "works/us");
  for (const ThreadsRow& row : rows) {
    std::printf("%2u thread%-3s", row.threads, row.threads == 1 ? "" : "s");
    for (const Samples* part : {&row.sender, &row.receiver, &row.cpu}) {
      std::printf("   %7.1f %7.1f %8.0f", part->min(), part->median(), part->max());
    }
    std::printf(" %12.1f\n", row.works_per_s * 1e-6);
  }
}

nlohmann::json to_json(const std::vector<Row>& rows) {
  nlohmann::json records = nlohmann::json::array();
  for (const Row& row : rows) {
    nlohmann::json record = {{"row", row.name}, {"sender_ns", to_json(row.sender)}};
    if (row.receiver.count() > 0) record["receiver_ns"] = to_json(row.receiver);
    if (row.has_aim) record["aim_ns"] = kAimNs;
    records.push_back(std::move(record));
  }
  return records;
}

nlohmann::json to_json(const std::vector<ThreadsRow>& rows) {
  nlohmann::json records = nlohmann::json::array();
  for (const ThreadsRow& row : rows) {
    records.push_back({{"threads", row.threads},
                       {"rails_per_thread", kRailsPerThread},
                       {"sender_ns", to_json(row.sender)},
                       {"receiver_ns", to_json(row.receiver)},
                       {"both_ends_cpu_ns", to_json(row.cpu)},
                       {"works_per_s", row.works_per_s}});
  }
  return records;
}

int parse_and_run(int argc, char** argv) {
  double seconds = 8;
  const char* json = nullptr;
  int only = -1;
  const option names[] = {{"json", required_argument, nullptr, 'j'},
                          {"seconds", required_argument, nullptr, 's'},
                          {"row", required_argument, nullptr, 'r'},
                          {"quick", no_argument, nullptr, 'q'},
                          {nullptr, 0, nullptr, 0}};
  for (int option; (option = getopt_long(argc, argv, "", names, nullptr)) != -1;) {
    switch (option) {
      case 'j':
        json = optarg;
        break;
      case 's':
        seconds = std::atof(optarg);
        break;
      case 'r':
        only = std::atoi(optarg);
        break;
      case 'q':
        seconds = 2;
        break;
      default:
        std::fprintf(stderr,
                     "usage: bench-engine [--quick] [--seconds N] [--row N] [--json FILE]\n"
                     "  --row N   only row N of the first table, counted from 0: for a profiler\n");
        return 2;
    }
  }
  std::vector<Row> rows = make_rows();
  std::vector<ThreadsRow> threads_rows = make_threads_rows();
  if (only >= 0 && static_cast<size_t>(only) < rows.size()) {
    std::swap(rows[0], rows[static_cast<size_t>(only)]);
    rows.resize(1);
    threads_rows.clear();
  }
  measure(rows, seconds);
  print(rows);
  for (ThreadsRow& row : threads_rows) run_threads(&row, seconds / 8);
  if (!threads_rows.empty()) print_threads(threads_rows);
  if (json) {
    const nlohmann::json whole = {{"bench", "engine"},
                                  {"rows", to_json(rows)},
                                  {"cores", core_count()},
                                  {"threads", to_json(threads_rows)}};
    std::ofstream(json) << whole.dump(1) << '\n';
  }
  return 0;
}

}  // namespace
}  // namespace slime::bench

int main(int argc, char** argv) { return slime::bench::parse_and_run(argc, argv); }
