// The table of nccl-tests, from the JSON document of the report.
#include <slime_version.h>

#include <map>

#include "base/text.h"
#include "tools/perf/report/report.h"
#include "transports/rail_counters.h"

namespace slime::perf {
namespace {

using nlohmann::json;

// A column shows one key of a row, or of each of its halves.
struct Column {
  const char *key, *title, *unit;
  int width;
};
constexpr Column kRowColumns[] = {{"size", "size", "(B)", 12},
                                  {"count", "count", "(elements)", 12},
                                  {"type", "type", "", 8},
                                  {"redop", "redop", "", 6},
                                  {"root", "root", "", 6}};
constexpr Column kHalfColumns[] = {{"time_us", "time", "(us)", 7},
                                   {"algbw_GBps", "algbw", "(GB/s)", 6},
                                   {"busbw_GBps", "busbw", "(GB/s)", 6},
                                   {"wrong", "#wrong", "", 6}};

std::string text_of(const json& value) { return displayed(value.get_ref<const std::string&>()); }

std::string padded(const std::string& text, int width) {
  const size_t missing = static_cast<size_t>(width) - std::min<size_t>(text.size(), width);
  return std::string(missing, ' ') + text;
}

// At most `width` characters: fewer decimals for larger numbers, as nccl-tests does.
std::string number(double value, int width) {
  char text[64];
  for (int decimals = 2; decimals >= 0; --decimals) {
    if (snprintf(text, sizeof text, "%*.*f", width, decimals, value) <= width) return text;
  }
  snprintf(text, sizeof text, "%*.*e", width, width >= 7 ? 1 : 0, value);
  return text;
}

std::string cell(const json& value, int width) {
  if (value.is_number_float()) return number(value.get<double>(), width);
  return value.is_null() ? "N/A" : value.is_string() ? text_of(value) : value.dump();
}

// One line of the table: `row_cell` of each column, and `half_cell` of each column of both halves.
template <typename RowCell, typename HalfCell>
std::string line_of(RowCell row_cell, HalfCell half_cell) {
  std::string line;
  for (const Column& column : kRowColumns) line += "  " + padded(row_cell(column), column.width);
  for (const char* half : {"out_of_place", "in_place"}) {
    for (const Column& column : kHalfColumns) {
      line += "  " + padded(half_cell(half, column), column.width);
    }
  }
  return line.substr(2);
}

void print_spread(FILE* out, const char* which, const json& half) {
  if (half["operations"] == 0) {
    fprintf(out, "#   %s: not timed\n", which);
    return;
  }
  fprintf(out, "#   %s: %lu operations of %.1f us, p99 %.1f us, max %.1f us\n", which,
          half["operations"].get<uint64_t>(), half["time_us"].get<double>(),
          half["p99_us"].get<double>(), half["max_us"].get<double>());
}

bool is_counter(const std::string& name, const json& value) {
  return value.is_number_unsigned() && name != "speed_mbps";
}

// Rails of the same name, transport and host, summed over the ranks that used them.
std::vector<json> sum_rails(const json& rails) {
  std::map<std::string, json> sums;
  for (const json& rail : rails) {
    std::string key;
    for (const char* part : {"host", "device", "rail", "transport"}) {
      key += text_of(rail[part]) + "\n";
    }
    const auto [found, is_new] = sums.try_emplace(key, rail);
    if (is_new) continue;
    for (const auto& [name, value] : rail.items()) {
      if (!is_counter(name, value)) continue;
      const auto before = found->second.value(name, uint64_t{0}), here = value.get<uint64_t>();
      found->second[name] = name.ends_with("_max") ? std::max(before, here) : before + here;
    }
  }
  std::vector<json> result;
  result.reserve(sums.size());
  for (auto& [key, rail] : sums) result.push_back(std::move(rail));
  return result;
}

// The counters in the order of the table they come from, then what a newer plugin may add.
std::string counters_of(json rail) {
  std::string text;
  const auto add = [&](const std::string& name) {
    if (rail.contains(name)) text += " " + name + " " + rail[name].dump();
    rail.erase(name);
  };
#define SLIME_ADD(name, help) add(#name);
  SLIME_RAIL_COUNTERS(SLIME_ADD)
#undef SLIME_ADD
  for (const auto& [name, value] : rail.items()) {
    if (is_counter(name, value)) text += " " + name + " " + value.dump();
  }
  return text;
}

}  // namespace

void Table::begin(const Options& options, const json& report) {
  if (out_ == nullptr) return;
  const json& plugin = report["plugin"];
  const bool factor = options.step_bytes == 0;
  const int channels = report["channels"];
  fprintf(out_, "# slime-perf %s (%s)  %s\n", SLIME_VERSION, SLIME_COMMIT,
          text_of(plugin["path"]).c_str());
  fprintf(out_, "# plugin %s, %s API v%d, %s buffers, %d channel%s, protocol %s\n",
          text_of(plugin["name"]).c_str(),
          options.algorithm == Algorithm::kCollNet ? "CollNet" : "net",
          plugin["api_version"].get<int>(), options.direct ? "registered user" : "staged", channels,
          channels == 1 ? "" : "s", text_of(report["protocol"]).c_str());
  fprintf(out_,
          "# minBytes %lu maxBytes %lu step: %lu(%s) warmup iters: %u iters: %u validation: %u\n",
          options.min_bytes, options.max_bytes, factor ? options.step_factor : options.step_bytes,
          factor ? "factor" : "bytes", options.warmups, options.iterations, options.checks);
  shows_spread_ = options.duration_s > 0;
  if (shows_spread_) {
    fprintf(out_, "# for %g s each; SIGINT or SIGTERM ends the run\n", options.duration_s);
  }
  fprintf(out_, "#\n# Using devices\n");
  size_t rank = 0;
  for (const json& member : report["members"]) {
    std::string names;
    for (const json& device : member["devices"]) {
      names += (names.empty() ? "" : ", ") + text_of(device);
    }
    fprintf(out_, "#  Rank %2zu Pid %6ld on %10s device %s\n", rank++, member["pid"].get<long>(),
            text_of(member["host"]).c_str(), names.c_str());
  }
  fprintf(out_, "#\n#%62sout-of-place                       in-place          \n", "");
  for (const auto text : {&Column::title, &Column::unit}) {
    const std::string line =
        line_of([&](const Column& column) { return column.*text; },
                [&](const char*, const Column& column) { return column.*text; });
    fprintf(out_, "# %s\n", line.c_str() + 2);
  }
  fflush(out_);
}

void Table::row(const json& row) {
  if (out_ == nullptr) return;
  const std::string line =
      line_of([&](const Column& column) { return cell(row[column.key], column.width); },
              [&](const char* half, const Column& column) {
                return cell(row[half][column.key], column.width);
              });
  fprintf(out_, "%s\n", line.c_str());
  if (shows_spread_) {
    print_spread(out_, "out of place", row["out_of_place"]);
    print_spread(out_, "in place", row["in_place"]);
  }
  fflush(out_);
}

void Table::end(const json& report, const std::string& rails_note) {
  if (out_ == nullptr) return;
  const uint64_t wrong = report["out_of_bounds"];
  if (report["ended_early"]) fprintf(out_, "# Ended early, as asked: the rows above are all\n");
  fprintf(out_, "# %-20s : %lu %s\n", "Out of bounds values", wrong, wrong > 0 ? "FAILED" : "OK");
  fprintf(out_, "# %-20s : %g\n", "Avg bus bandwidth", report["average_busbw_GBps"].get<double>());
  fprintf(out_, "#\n");
  for (const json& rail : sum_rails(report["rails"])) {
    fprintf(out_, "# rail %s on %s (device %s, %s %s, %lu Mb/s):%s\n",
            text_of(rail["rail"]).c_str(), text_of(rail["host"]).c_str(),
            text_of(rail["device"]).c_str(), text_of(rail["transport"]).c_str(),
            text_of(rail["address"]).c_str(), rail["speed_mbps"].get<uint64_t>(),
            counters_of(rail).c_str());
  }
  if (!rails_note.empty()) fprintf(out_, "# rails: %s\n", rails_note.c_str());
  fprintf(out_, "#\n# Collective test concluded: %s\n", text_of(report["collective"]).c_str());
  fflush(out_);
}

}  // namespace slime::perf
