#include "plugin/stats.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/process.h"
#include "collnet/comm/report.h"
#include "plugin/logger.h"

namespace slime::plugin {
namespace {

// A limit is needed because a program may open any number of communicators.
constexpr size_t kMostPastWorkers = 256;

// Adds the counters of one rail to those with the same device and name, or as a new entry.
void add_to(std::vector<RailReport>* reports, const RailReport& more) {
  for (RailReport& report : *reports) {
    if (report.device == more.device && report.rail == more.rail) {
      report.totals.add(more.totals);
      return;
    }
  }
  reports->push_back(more);
}

void add_to(std::vector<InterfaceReport>* reports, const InterfaceReport& more) {
  const auto known = std::ranges::find(*reports, more.name, &InterfaceReport::name);
  if (known == reports->end()) return reports->push_back(more);
  known->traffic = known->traffic + more.traffic;
}

template <typename Report>
std::vector<Report> sum(std::vector<Report> past, const std::vector<Report>& now) {
  for (const Report& one : now) add_to(&past, one);
  return past;
}

bool was_used(const RailReport& rail) { return rail.totals.works + rail.totals.arrivals > 0; }

void log_rail(const RailReport& rail) {
  std::string text;
#define SLIME_FIELD(name, help) \
  text += (text.empty() ? #name " " : ", " #name " ") + std::to_string(rail.totals.name);
  SLIME_RAIL_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
  SLIME_INFO("rail %s (%s %s, device %s): %s", rail.rail.c_str(), rail.transport.c_str(),
             rail.address.c_str(), rail.device.c_str(), text.c_str());
}

void log_interface(const InterfaceReport& one) {
  SLIME_INFO("interface %s, all programs: sent %llu bytes meanwhile, and received %llu",
             one.name.c_str(), static_cast<unsigned long long>(one.traffic.sent),
             static_cast<unsigned long long>(one.traffic.received));
}

nlohmann::ordered_json json_of(const InterfaceReport& one) {
  return {{"interface", one.name},
          {"bytes_sent", one.traffic.sent},
          {"bytes_received", one.traffic.received}};
}

nlohmann::ordered_json json_of(const RailReport& rail) {
  nlohmann::ordered_json row;
  row["device"] = rail.device;
  row["rail"] = rail.rail;
  row["transport"] = rail.transport;
  row["address"] = rail.address;
  row["speed_mbps"] = rail.speed_mbps;
#define SLIME_FIELD(name, help) row[#name] = rail.totals.name;
  SLIME_RAIL_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
  return row;
}

}  // namespace

std::string expand_stats_path(const std::string& pattern) {
  std::string path;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char next = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (pattern[i] != '%' || (next != 'p' && next != 'h' && next != '%')) {
      path += pattern[i];
      continue;
    }
    if (next == 'p') path += std::to_string(getpid());
    if (next == 'h') path += own_host_name();
    if (next == '%') path += '%';
    ++i;
  }
  return path;
}

std::string render_stats(const StatsReport& report) {
  nlohmann::ordered_json document;
  document["version"] = kVersion;
  document["commit"] = kCommit;
  document["pid"] = getpid();
  document["host"] = own_host_name();
  auto& list = document["rails"] = nlohmann::ordered_json::array();
  for (const RailReport& rail : report.rails) list.push_back(json_of(rail));
  auto& interfaces = document["interfaces"] = nlohmann::ordered_json::array();
  for (const InterfaceReport& one : report.interfaces) interfaces.push_back(json_of(one));
  auto& workers = document["collnet"] = nlohmann::ordered_json::array();
  for (const WorkerReport& worker : report.workers) workers.push_back(slime::json_of(worker));
  document["collnet_forgotten"] = report.forgotten_workers;
  // A host name need not be UTF-8; a replacement character is better than no report.
  return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void Stats::mark_used() {
  const std::lock_guard lock(mutex_);
  used_ = true;
}

// Keeps the newest reports and counts the others.
void Stats::keep(WorkerReport report) {
  const std::lock_guard lock(mutex_);
  past_workers_.push_back(std::move(report));
  if (past_workers_.size() <= kMostPastWorkers) return;
  past_workers_.pop_front();
  ++forgotten_workers_;
}

// The log gets lines only if a connection was made since the last report, and of rails that were
// used; the file is always written, with all rails.
void Stats::report(const Devices& devices, const std::vector<WorkerReport>& open) {
  const std::lock_guard lock(mutex_);
  StatsReport report{.rails = sum(past_, devices.report()),
                     .interfaces = sum(past_interfaces_, devices.interfaces()),
                     .workers = {past_workers_.begin(), past_workers_.end()},
                     .forgotten_workers = forgotten_workers_};
  report.workers.insert(report.workers.end(), open.begin(), open.end());
  if (used_) {
    for (const RailReport& rail : report.rails) {
      if (was_used(rail)) log_rail(rail);
    }
    for (const InterfaceReport& one : report.interfaces) log_interface(one);
  }
  used_ = false;
  if (devices.settings().stats.empty()) return;
  const Result<void> written =
      write_stats(expand_stats_path(devices.settings().stats), render_stats(report));
  if (!written && !write_failed_) SLIME_WARN("%s", written.error().what.c_str());
  write_failed_ = write_failed_ || !written;
}

// Rails that were never used leave no entry.
void Stats::retire(const Devices& devices) {
  const std::lock_guard lock(mutex_);
  for (const RailReport& report : devices.report()) {
    if (was_used(report)) add_to(&past_, report);
  }
  past_interfaces_ = sum(std::move(past_interfaces_), devices.interfaces());
}

}  // namespace slime::plugin
