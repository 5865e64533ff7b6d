#include "tools/perf/p2p/report.h"

#include <cerrno>
#include <nlohmann/json.hpp>

namespace slime::perf::p2p {
namespace {

using nlohmann::json;

constexpr double kMs = 1e-6, kUs = 1e-3;  // of nanoseconds

json json_of(const Sample& sample) {
  return {{"requests", sample.latencies_ns.size()},
          {"mean_us", sample.mean_ns() * kUs},
          {"call_us", sample.call_ns() * kUs},
          {"p50_us", static_cast<double>(sample.percentile(0.5)) * kUs},
          {"p99_us", static_cast<double>(sample.percentile(0.99)) * kUs},
          {"max_us", static_cast<double>(sample.percentile(1)) * kUs},
          {"megabytes_per_second", sample.megabytes_per_second()},
          {"cpu_ns_per_byte", sample.cpu_ns_per_byte()},
          {"target_cpu_ns_per_byte", sample.target_cpu_ns_per_byte()}};
}

json json_of(const Options& options, const std::vector<Row>& rows) {
  json all = json::array();
  for (const Row& row : rows) {
    json one = {{"size", row.size},
                {"rails", row.rails},
                {"engine", json_of(row.engine)},
                {"doorbells_per_work", row.engine.doorbells_per_work()},
                {"wrong", row.wrong}};
    if (options.plan) one["prepare_ns_per_assignment"] = row.prepare_ns;
    if (row.raw) one["raw"] = json_of(*row.raw);
    all.push_back(std::move(one));
  }
  return {{"operation", name_of(options.operation)},
          {"batch", options.batch},
          {"concurrency", options.concurrency},
          {"seconds", options.seconds},
          {"turns", options.turns},
          {"immediate", options.immediate},
          {"plan", options.plan},
          {"rows", std::move(all)}};
}

}  // namespace

Result<void> write_json(const Options& options, const std::vector<Row>& rows) {
  const std::string text = json_of(options, rows).dump(2) + "\n";
  FILE* const file = options.json_path == "-" ? stdout : fopen(options.json_path.c_str(), "we");
  if (file == nullptr || fputs(text.c_str(), file) < 0 || fflush(file) != 0) {
    return fail(system_error(errno, "cannot write %s", options.json_path.c_str()));
  }
  if (file != stdout) fclose(file);
  return {};
}

// The first columns are those of DLSlime's benchmark.
void print_head(FILE* to, const Options& options) {
  fprintf(to, "# %s, between two processes; latencies of requests\n", name_of(options.operation));
  fprintf(to, "%9s %12s %10s %15s %15s %15s %9s %9s %9s %9s %11s %13s %14s", "#Channels",
          "Message Size", "Batch Size", "Num Concurrency", "Avg Latency(ms)", "Bandwidth(MB/s)",
          "call(us)", "p50(us)", "p99(us)", "max(us)", "CPU(ns/B)", "target(ns/B)",
          "doorbells/work");
  if (options.plan) fprintf(to, " %11s", "prepare(ns)");
  if (options.raw) fprintf(to, " %12s %12s", "p50/raw", "bandwidth/raw");
  if (options.check) fprintf(to, " %6s", "#wrong");
  fprintf(to, "\n");
}

void print_row(FILE* to, const Options& options, const Row& row) {
  const Sample& mine = row.engine;
  fprintf(to, "%9u %12llu %10u %15u %15.4f %15.1f %9.1f %9.1f %9.1f %9.1f %11.3f %13.3f %14.3f",
          row.rails, static_cast<unsigned long long>(row.size), options.batch, options.concurrency,
          mine.mean_ns() * kMs, mine.megabytes_per_second(), mine.call_ns() * kUs,
          static_cast<double>(mine.percentile(0.5)) * kUs,
          static_cast<double>(mine.percentile(0.99)) * kUs,
          static_cast<double>(mine.percentile(1)) * kUs, mine.cpu_ns_per_byte(),
          mine.target_cpu_ns_per_byte(), mine.doorbells_per_work());
  if (options.plan) fprintf(to, " %11.1f", row.prepare_ns);
  if (row.raw) {
    fprintf(
        to, " %12.3f %12.3f",
        static_cast<double>(mine.percentile(0.5)) / static_cast<double>(row.raw->percentile(0.5)),
        mine.megabytes_per_second() / row.raw->megabytes_per_second());
  }
  if (options.check) fprintf(to, " %6llu", static_cast<unsigned long long>(row.wrong));
  fprintf(to, "\n");
  fflush(to);
}

}  // namespace slime::perf::p2p
