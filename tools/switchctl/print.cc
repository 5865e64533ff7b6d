#include "tools/switchctl/print.h"

#include <string>

#include "base/text.h"
#include "tools/common/bytes.h"
#include "tools/info/columns.h"

namespace slime::switchctl {
namespace {

using info::Columns;
using nlohmann::ordered_json;

// A member of an object, or null: reports of other releases may lack it.
const ordered_json& at(const ordered_json& whole, const char* name) {
  static const ordered_json nothing = nullptr;
  if (!whole.is_object()) return nothing;
  const auto found = whole.find(name);
  return found == whole.end() ? nothing : *found;
}

constexpr size_t kMostInCell = 256;

// A value as a table shows it; "-" for what is missing or of another kind.
std::string cell(const ordered_json& value) {
  if (value.is_number_unsigned()) return std::to_string(value.get<uint64_t>());
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_array()) {
    std::string all;
    for (const auto& one : value) all += (all.empty() ? "" : ",") + cell(one);
    return all;
  }
  if (!value.is_string()) return "-";
  return displayed(value.get_ref<const std::string&>(), kMostInCell);
}

std::string size(const ordered_json& value) {
  return value.is_number_unsigned() ? tools::format_bytes(value.get<uint64_t>()) : "-";
}

std::string seconds(const ordered_json& milliseconds) {
  if (!milliseconds.is_number_unsigned()) return "-";
  char text[32];
  snprintf(text, sizeof text, "%.1f s", static_cast<double>(milliseconds.get<uint64_t>()) * 1e-3);
  return text;
}

// The job's place in a tree; empty if it is in none.
std::string place(const ordered_json& job) {
  if (at(job, "parent").is_string()) return ", level 0, parent " + cell(at(job, "parent"));
  return cell(at(job, "level")) == "1" ? ", level 1: its children are switches" : "";
}

std::string count(const ordered_json& list) {
  return list.is_array() ? std::to_string(list.size()) : "-";
}

}  // namespace

void print_show(const ordered_json& report, FILE* out) {
  const ordered_json& self = at(report, "switch");
  fprintf(out, "switch %s: %s shards, at most %s lanes, formats %s\n",
          cell(at(self, "address")).c_str(), cell(at(self, "shards")).c_str(),
          cell(at(self, "max_lanes")).c_str(), cell(at(self, "formats")).c_str());
  fprintf(out, "%s of %s jobs, %s of %s slot memory%s\n", cell(at(self, "jobs")).c_str(),
          cell(at(self, "max_jobs")).c_str(), size(at(self, "slot_bytes_used")).c_str(),
          size(at(self, "slot_bytes")).c_str(),
          cell(at(self, "draining")) == "yes" ? ", draining: takes no new jobs" : "");
  if (at(self, "parent").is_string()) {
    const std::string trouble = cell(at(self, "parent_trouble"));
    fprintf(out, "parent %s%s%s\n", cell(at(self, "parent")).c_str(),
            trouble.empty() || trouble == "-" ? "" : ": ", trouble == "-" ? "" : trouble.c_str());
  }
  const ordered_json& jobs = at(report, "jobs");
  if (!jobs.is_array() || jobs.empty()) return;
  Columns table;
  table.add({"job", "gen", "tenant", "children", "rails", "slots", "lanes", "memory", "age",
             "lease left", "level", "parent", "share", "session"});
  for (const auto& job : jobs) {
    table.add({cell(at(job, "job")), cell(at(job, "generation")), cell(at(job, "tenant")),
               count(at(job, "children")), cell(at(job, "rails")), cell(at(job, "slots")),
               cell(at(job, "lanes")), size(at(job, "slot_bytes")), seconds(at(job, "age_ms")),
               seconds(at(job, "lease_left_ms")), cell(at(job, "level")), cell(at(job, "parent")),
               cell(at(job, "share")) + " of " + cell(at(job, "shares")),
               cell(at(job, "session"))});
  }
  fprintf(out, "\n");
  table.print("", out);
}

void print_stats(const ordered_json& report, FILE* out) {
  const ordered_json& jobs = at(report, "jobs");
  const auto counters = [out](const std::string& title, const ordered_json& values) {
    Columns table;
    fprintf(out, "%s\n", title.c_str());
    if (!values.is_object()) return;
    for (const auto& [name, value] : values.items()) table.add({cell(name), cell(value)});
    table.print("  ", out);
  };
  if (jobs.is_array()) {
    for (const auto& job : jobs) {
      counters("job " + cell(at(job, "job")) + ", generation " + cell(at(job, "generation")) +
                   ", tenant " + cell(at(job, "tenant")) + place(job),
               at(job, "counters"));
    }
  }
  counters("control", at(report, "control"));
  counters("data", at(report, "data"));
}

}  // namespace slime::switchctl
