// ncclNetProperties of all versions in one structure.
#pragma once

#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "plugin/abi/properties.h"

namespace slime::tools {

// What a version lacks stays empty. Texts are the plugin's, and may be NULL.
struct DeviceProperties {
  const char* name = nullptr;
  const char* pci_path = nullptr;
  uint64_t guid = 0;
  int pointer_support = 0;
  int speed_mbps = 0;
  int port = 0;
  float latency_us = 0;
  int max_comms = 0;
  int max_receives = 0;
  std::optional<int> net_device_type, net_device_version;     // v7
  std::optional<int> registration_is_global;                  // v8
  std::optional<int> force_flush;                             // v9
  std::optional<std::vector<int>> members;                    // v9: of a merged device
  std::optional<size_t> max_p2p_bytes, max_collective_bytes;  // v9
  std::optional<int> max_multi_request_size;                  // v11
  std::optional<int> rail_id, plane_id;                       // v12
};

template <typename Properties>
DeviceProperties widen(const Properties& from) {
  DeviceProperties to;
  to.name = from.name;
  to.pci_path = from.pci_path;
  to.guid = from.guid;
  to.pointer_support = from.pointer_support;
  to.speed_mbps = from.speed_mbps;
  to.port = from.port;
  to.latency_us = from.latency_us;
  to.max_comms = from.max_comms;
  to.max_receives = from.max_receives;
  if constexpr (requires { from.net_device_type; }) {
    to.net_device_type = from.net_device_type;
    to.net_device_version = from.net_device_version;
  }
  if constexpr (requires { from.registration_is_global; }) {
    to.registration_is_global = from.registration_is_global;
  }
  if constexpr (requires { from.force_flush; }) to.force_flush = from.force_flush;
  if constexpr (requires { from.virtual_device; }) {
    // The count is the plugin's word; the array has no more places than these.
    const auto& [count, devices] = from.virtual_device;
    const int known = std::clamp(count, 0, static_cast<int>(std::size(devices)));
    to.members = std::vector<int>(devices, devices + known);
    to.max_p2p_bytes = from.max_p2p_bytes;
    to.max_collective_bytes = from.max_collective_bytes;
  }
  if constexpr (requires { from.max_multi_request_size; }) {
    to.max_multi_request_size = from.max_multi_request_size;
  }
  if constexpr (requires { from.rail_id; }) {
    to.rail_id = from.rail_id;
    to.plane_id = from.plane_id;
  }
  return to;
}

}  // namespace slime::tools
