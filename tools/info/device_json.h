// ncclNetProperties of any version as JSON, with NCCL's names of the fields.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "plugin/nccl_properties.h"

namespace slime::info {

inline nlohmann::json pointer_kinds(int support) {
  nlohmann::json kinds = nlohmann::json::array();
  if (support & nccl::kPointerHost) kinds.push_back("host");
  if (support & nccl::kPointerCuda) kinds.push_back("cuda");
  if (support & nccl::kPointerDmaBuf) kinds.push_back("dmabuf");
  return kinds;
}

inline std::string hex(uint64_t number) {
  char text[24];
  snprintf(text, sizeof text, "0x%016llx", static_cast<unsigned long long>(number));
  return text;
}

inline nlohmann::json text_or_null(const char* text) {
  return text != nullptr ? nlohmann::json(text) : nlohmann::json(nullptr);
}

template <typename VirtualDevice>
nlohmann::json members_of(const VirtualDevice& device) {
  nlohmann::json members = nlohmann::json::array();
  for (int i = 0; i < device.count && i < static_cast<int>(std::size(device.devices)); ++i) {
    members.push_back(device.devices[i]);
  }
  return members;
}

template <typename Properties>
nlohmann::json device_json(int index, const Properties& p) {
  nlohmann::json device = {{"index", index},
                           {"name", text_or_null(p.name)},
                           {"pciPath", text_or_null(p.pci_path)},
                           {"guid", hex(p.guid)},
                           {"ptrSupport", pointer_kinds(p.pointer_support)},
                           {"speed_mbps", p.speed_mbps},
                           {"port", p.port},
                           {"latency_us", p.latency_us},
                           {"maxComms", p.max_comms},
                           {"maxRecvs", p.max_receives}};
  if constexpr (requires { p.net_device_type; }) {
    device["netDeviceType"] = static_cast<int>(p.net_device_type);
    device["netDeviceVersion"] = p.net_device_version;
  }
  if constexpr (requires { p.registration_is_global; }) {
    device["regIsGlobal"] = p.registration_is_global != 0;
  }
  if constexpr (requires { p.force_flush; }) device["forceFlush"] = p.force_flush != 0;
  if constexpr (requires { p.virtual_device; }) {
    device["vProps"] = members_of(p.virtual_device);
    device["maxP2pBytes"] = p.max_p2p_bytes;
    device["maxCollBytes"] = p.max_collective_bytes;
  }
  if constexpr (requires { p.max_multi_request_size; }) {
    device["maxMultiRequestSize"] = p.max_multi_request_size;
  }
  if constexpr (requires { p.rail_id; }) {
    device["railId"] = p.rail_id;
    device["planeId"] = p.plane_id;
  }
  return device;
}

}  // namespace slime::info
