#include "tools/info/rails_report.h"

#include "engine/fabric.h"
#include "tools/info/device_json.h"

namespace slime::info {
namespace {

nlohmann::json rail_json(const RailCaps& caps) {
  return {
      {"name", caps.name},
      {"transport", caps.transport},
      {"address", caps.oob_address},
      {"reason", caps.reason},
      {"pciPath", caps.pci_path.empty() ? nlohmann::json(nullptr) : nlohmann::json(caps.pci_path)},
      {"guid", hex(caps.guid)},
      {"port", caps.port},
      {"numa_node", caps.numa_node},
      {"speed_mbps", caps.speed_mbps},
      {"latency_us", caps.latency_us},
      {"send_queue_depth", caps.send_queue_depth},
      {"max_batch", caps.max_batch},
      {"ll128_safe", caps.lines_in_order}};
}

}  // namespace

RailsReport report_rails(const Settings& settings) {
  RailsReport report;
  const auto fabric = Fabric::open(settings, SteadyClock::instance());
  if (!fabric) {
    report.error = fabric.error().what;
    return report;
  }
  report.skipped = (*fabric)->notes();
  for (size_t i = 0; i < (*fabric)->device_count(); ++i) {
    const Device& device = *(*fabric)->device(static_cast<int>(i));
    nlohmann::json rails = nlohmann::json::array();
    for (const Rail* rail : device.rails()) rails.push_back(rail_json(rail->caps()));
    report.devices.push_back({{"name", device.properties().name}, {"rails", rails}});
  }
  return report;
}

}  // namespace slime::info
