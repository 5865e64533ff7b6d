#include "tools/perf/devices.h"

#include <algorithm>

namespace slime::perf {
namespace {

Result<int> count_devices(const Plugin& plugin) {
  int count = 0;
  const auto code = plugin.net()->devices(&count);
  if (code == nccl::kSuccess && count > 0) return count;
  const std::string why = why_no_devices();
  return fail(make_error(Status::kConfig, code,
                         "%s has no network device (%s, %d devices), so NCCL would not use it; "
                         "it says: %s",
                         plugin.path().c_str(), result_name(code), count,
                         why.empty() ? "(it does not say why)" : why.c_str()));
}

}  // namespace

Result<DeviceChoice> choose_devices(const Plugin& plugin, const std::vector<int>& wanted) {
  const auto count = count_devices(plugin);
  if (!count) return fail(count.error());
  DeviceChoice choice;
  choice.indices = wanted;
  for (int i = 0; wanted.empty() && i < *count; ++i) choice.indices.push_back(i);
  choice.speed.speed_mbps = 0;
  for (const int device : choice.indices) {
    NetProperties properties;
    if (device >= *count || plugin.net()->properties(device, &properties) != nccl::kSuccess) {
      return fail(make_error(Status::kConfig, 0, "--net-dev %d: there are devices 0 to %d", device,
                             *count - 1));
    }
    if (!properties.on_host || properties.max_p2p_bytes == 0) {
      return fail(
          make_error(Status::kUnsupported, 0, "device %d needs a GPU (device offload)", device));
    }
    choice.speed.speed_mbps += properties.speed_mbps > 0 ? properties.speed_mbps : 10000;
    choice.speed.latency_us = std::max(choice.speed.latency_us, properties.latency_us);
    choice.described.push_back({{"index", device},
                                {"name", properties.name},
                                {"pci_path", properties.pci_path},
                                {"speed_mbps", properties.speed_mbps},
                                {"latency_us", properties.latency_us},
                                {"max_receives", properties.max_receives}});
  }
  return choice;
}

nlohmann::json names_of(const nlohmann::json& described) {
  nlohmann::json names = nlohmann::json::array();
  for (const auto& device : described) names.push_back(device["name"]);
  return names;
}

}  // namespace slime::perf
