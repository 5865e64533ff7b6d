// Metrics for Prometheus: a number of lines per job, and there are at most jobs.max of them. A
// family is a name with its help, type and samples, one for each set of labels.
#include <vector>

#include "switch/controller/report.h"

namespace slime::net {
namespace {

struct Sample {
  std::string labels;  // with braces; values are tenant names and numbers: nothing to escape
  uint64_t value = 0;
};

void family(std::string* out, const std::string& name, const char* type, const char* help,
            const std::vector<Sample>& samples) {
  *out += "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
  for (const Sample& sample : samples) {
    *out += name + sample.labels + " " + std::to_string(sample.value) + "\n";
  }
}

void gauge(std::string* out, const char* name, const char* help, uint64_t value) {
  family(out, name, "gauge", help, {{"", value}});
}

struct JobRow {
  std::string labels;
  JobTotals totals;
};

std::vector<JobRow> job_rows(const Controller& controller) {
  std::vector<JobRow> rows;
  for (const auto& [number, job] : controller.jobs()) {
    const auto totals = controller.driver().totals(number);
    if (!totals) continue;
    rows.push_back(
        {"{job=\"" + std::to_string(number) + "\",tenant=\"" + job.tenant + "\"}", *totals});
  }
  return rows;
}

void job_families(std::string* out, const Controller& controller) {
  const auto rows = job_rows(controller);
  if (rows.empty()) return;
  std::vector<Sample> samples;
#define SLIME_FIELD(name, help)                                                    \
  samples.clear();                                                                 \
  for (const JobRow& row : rows) samples.push_back({row.labels, row.totals.name}); \
  family(out, "slime_job_" #name "_total", "counter", help, samples);
  SLIME_JOB_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
}

// Which jobs are parts of trees.
void tree_families(std::string* out, const Controller& controller) {
  if (controller.options().parent) {
    gauge(out, "slime_switch_parent_well", "1 unless the parent did not answer when asked last",
          controller.leaf().parent_trouble().empty());
  }
  gauge(out, "slime_switch_trees_pending", "trees of switches that wait for a member, or failed",
        controller.pending_trees().size());
  std::vector<Sample> samples;
  for (const auto& [number, job] : controller.jobs()) {
    if (job.tree == 0) continue;
    const bool root = job.spec.children_are_switches;
    samples.push_back({"{job=\"" + std::to_string(number) + "\",level=\"" + (root ? "1" : "0") +
                           "\",parent=\"" +
                           (job.spec.parent ? job.spec.parent->address.to_string() : "") + "\"}",
                       job.spec.child_count()});
  }
  if (samples.empty()) return;
  family(out, "slime_job_tree_children", "gauge",
         "children of a job on a tree: workers (level 0), or switches (level 1)", samples);
}

void tenant_families(std::string* out, const Controller& controller) {
  const auto usage = controller.usage().by_tenant;
  if (usage.empty()) return;
  std::vector<Sample> jobs, bytes;
  for (const auto& [name, own] : usage) {
    const std::string labels = "{tenant=\"" + name + "\"}";
    jobs.push_back({labels, own.jobs});
    bytes.push_back({labels, own.slot_bytes});
  }
  family(out, "slime_tenant_jobs", "gauge", "jobs of a tenant", jobs);
  family(out, "slime_tenant_slot_bytes", "gauge", "slot memory that a tenant holds", bytes);
}

}  // namespace

std::string metrics_text(const Controller& controller) {
  const SwitchShape shape = controller.driver().shape();
  const SwitchUsage usage = controller.usage();
  std::string out;
  gauge(&out, "slime_switch_jobs", "jobs on this switch", usage.jobs);
  gauge(&out, "slime_switch_max_jobs", "jobs that this switch may have",
        controller.options().max_jobs);
  gauge(&out, "slime_switch_slot_bytes", "slot memory of this switch", shape.slot_bytes);
  gauge(&out, "slime_switch_slot_bytes_used", "slot memory that jobs hold", usage.slot_bytes);
  gauge(&out, "slime_switch_draining", "1 while no new jobs are taken", controller.draining());
  const ControlCounters& control = controller.counters();
#define SLIME_FIELD(name, help) \
  family(&out, "slime_control_" #name "_total", "counter", help, {{"", control.name.get()}});
  SLIME_CONTROL_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
  for (const DeviceCounter& one : controller.driver().counters()) {
    family(&out, std::string("slime_data_") + one.name + "_total", "counter", one.help,
           {{"", one.value}});
  }
  tenant_families(&out, controller);
  tree_families(&out, controller);
  job_families(&out, controller);
  return out;
}

}  // namespace slime::net
