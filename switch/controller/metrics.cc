// Metrics in the text format 0.0.4 of Prometheus (its manual, "Exposition formats"). A family is a
// name with its help, type and samples, one for each set of labels.
#include <vector>

#include "switch/controller/controller.h"

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

// A family for each counter, with a sample for each job.
void job_families(std::string* out, const Controller& controller) {
  struct Family {
    std::string name;
    const char* help;
    std::vector<Sample> samples;
  };
  std::vector<Family> families;
  for (const auto& [number, job] : controller.jobs()) {
    const auto totals = controller.driver().totals(number);
    if (!totals) continue;
    const std::string labels =
        "{job=\"" + std::to_string(number) + "\",tenant=\"" + job.tenant + "\"}";
    size_t at = 0;
    totals->each([&](const char* name, const char* help, uint64_t value) {
      if (at == families.size()) families.push_back({name, help, {}});
      families[at++].samples.push_back({labels, value});
    });
  }
  for (const Family& one : families) {
    family(out, "slime_job_" + one.name + "_total", "counter", one.help, one.samples);
  }
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
    samples.push_back({"{job=\"" + std::to_string(number) + "\",level=\"" +
                           std::to_string(job.level()) + "\",parent=\"" +
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
  const auto counter = [&](std::string name, const char* help, uint64_t value) {
    family(&out, "slime_" + name + "_total", "counter", help, {{"", value}});
  };
  controller.totals().each([&](const char* name, const char* help, uint64_t value) {
    counter(std::string("control_") + name, help, value);
  });
  for (const DeviceCounter& one : controller.driver().counters()) {
    counter(std::string("data_") + one.name, one.help, one.value);
  }
  tenant_families(&out, controller);
  tree_families(&out, controller);
  job_families(&out, controller);
  return out;
}

}  // namespace slime::net
