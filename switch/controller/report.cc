// The report of a switch as JSON, for slime-switchctl: the switch, its jobs, tenants and counters.
#include <nlohmann/json.hpp>

#include <cinttypes>
#include <cstdio>

#include "switch/controller/controller.h"

namespace slime::net {

using nlohmann::ordered_json;

namespace {

ordered_json format_names(uint32_t formats) {
  ordered_json names = ordered_json::array();
  for (uint8_t i = 0; i < 8; ++i) {
    const auto format = static_cast<sap::Format>(i);
    if (sap::has_format(formats, format)) names.push_back(control::name_of(format));
  }
  return names;
}

template <typename Totals>
ordered_json counters_json(const Totals& totals) {
  ordered_json counters;
  totals.each([&](const char* name, const char*, uint64_t value) { counters[name] = value; });
  return counters;
}

ordered_json data_counters_json(const Controller& controller) {
  ordered_json counters = ordered_json::object();
  for (const DeviceCounter& one : controller.driver().counters()) counters[one.name] = one.value;
  return counters;
}

ordered_json address_or_null(const SocketAddress* address) {
  return address == nullptr ? ordered_json(nullptr) : ordered_json(address->to_string());
}

// Jobs of one session have the same name on all its switches.
std::string session_name(uint64_t session) {
  char text[17];
  snprintf(text, sizeof text, "%016" PRIx64, session);
  return text;
}

ordered_json job_json(const Controller& controller, const Job& job, bool counters) {
  const uint64_t now = controller.now_ns();
  ordered_json children = ordered_json::array();
  for (size_t i = 0; i < job.spec.child_count(); ++i) {  // first rails only: a report is bounded
    children.push_back(job.spec.children[i].to_string());
  }
  ordered_json row = {
      {"job", job.ref.job},
      {"generation", job.ref.generation},
      {"tenant", job.tenant},
      {"slots", job.spec.slots},
      {"lanes", job.spec.max_lanes},
      {"slot_bytes", job.slot_bytes},
      {"formats", format_names(job.spec.formats)},
      {"age_ms", (now - job.created_ns) / 1'000'000},
      {"lease_left_ms", job.lease_until_ns > now ? (job.lease_until_ns - now) / 1'000'000 : 0},
      {"ended", job.ended},
      {"level", job.level()},
      {"parent", address_or_null(job.spec.parent ? &job.spec.parent->address : nullptr)},
      {"session", session_name(job.session)},
      {"share", job.share + 1},
      {"shares", job.shares},
      {"rails", job.spec.rails},
      {"children", children}};
  if (!counters) return row;
  const auto totals = controller.driver().totals(job.ref.job);
  row["counters"] = totals ? counters_json(*totals) : ordered_json(nullptr);
  return row;
}

ordered_json switch_json(const Controller& controller) {
  const SwitchShape shape = controller.driver().shape();
  const SwitchUsage usage = controller.usage();
  const auto& parent = controller.options().parent;
  return {{"address", shape.address.to_string()},
          {"shards", shape.shards},
          {"max_lanes", shape.max_lanes},
          {"formats", format_names(shape.formats)},
          {"slot_bytes", shape.slot_bytes},
          {"slot_bytes_used", usage.slot_bytes},
          {"jobs", usage.jobs},
          {"max_jobs", controller.options().max_jobs},
          {"lease_ms", controller.options().lease_ns / 1'000'000},
          {"draining", controller.draining()},
          {"parent", address_or_null(parent ? &*parent : nullptr)},
          {"parent_trouble", controller.leaf().parent_trouble()},
          {"trees_pending", controller.pending_trees().size()}};
}

}  // namespace

std::string report_json(const Controller& controller, bool counters) {
  ordered_json jobs = ordered_json::array(), tenants = ordered_json::array();
  for (const auto& [number, job] : controller.jobs()) {
    jobs.push_back(job_json(controller, job, counters));
  }
  const SwitchUsage usage = controller.usage();
  for (const auto& [name, own] : usage.by_tenant) {
    tenants.push_back({{"tenant", name}, {"jobs", own.jobs}, {"slot_bytes", own.slot_bytes}});
  }
  ordered_json whole = {{"switch", switch_json(controller)},
                        {"jobs", jobs},
                        {"tenants", tenants},
                        {"control", counters_json(controller.totals())}};
  if (counters) whole["data"] = data_counters_json(controller);
  // No byte that came from a stranger may make this throw.
  return whole.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace slime::net
