// Functions that the tables of ncclNet and ncclCollNet share. The types of a version select the
// instance or the overload for its table.
#pragma once

#include <algorithm>
#include <climits>

#include "plugin/abi/properties.h"
#include "plugin/api_call.h"
#include "plugin/net.h"

namespace slime::plugin::table {

using nccl::ResultCode;

inline ResultCode init(nccl::Logger logger) noexcept {
  return api_call("init", [&] { return plugin::init(logger); });
}

template <typename Properties>
void fill_virtual_device(Properties* to, const DeviceProperties& from) {
  constexpr size_t kMax = sizeof to->virtual_device.devices / sizeof(int);
  to->virtual_device = {};
  for (size_t i = 0; i < from.members.size() && i < kMax; ++i) {
    to->virtual_device.devices[to->virtual_device.count++] = from.members[i];
  }
}

// Fills the fields that the version has.
template <typename Properties>
void fill(Properties* to, const DeviceProperties& from) {
  *to = {};
  to->name = const_cast<char*>(keep_for_ever(from.name));
  if (!from.pci_path.empty()) to->pci_path = const_cast<char*>(keep_for_ever(from.pci_path));
  to->guid = from.guid;
  to->pointer_support = pointer_support(from);
  to->speed_mbps = static_cast<int>(std::min<uint64_t>(from.speed_mbps, INT_MAX));
  to->port = from.port;
  to->latency_us = from.latency_us;
  to->max_comms = kMaxComms;
  to->max_receives = kMaxReceives;
  if constexpr (requires { to->net_device_type; }) {
    to->net_device_type = nccl::kNetDeviceHost;
    to->net_device_version = nccl::kNetDeviceInvalidVersion;
  }
  if constexpr (requires { to->registration_is_global; }) to->registration_is_global = 1;
  if constexpr (requires { to->force_flush; }) to->force_flush = 0;
  if constexpr (requires { to->virtual_device; }) {
    fill_virtual_device(to, from);
    to->max_p2p_bytes = kMaxMessageBytes;
    to->max_collective_bytes = kMaxMessageBytes;
  }
  if constexpr (requires { to->max_multi_request_size; }) to->max_multi_request_size = 1;
  if constexpr (requires { to->rail_id; }) {
    to->rail_id = nccl::kNetIdUndefined;
    to->plane_id = nccl::kNetIdUndefined;
  }
}

template <typename Properties>
ResultCode get_properties(int device, Properties* to) noexcept {
  return api_call("getProperties", [&]() -> Result<void> {
    if (to == nullptr) return fail(null_argument("props"));
    const auto known = find_device(device);
    if (!known) return fail(known.error());
    fill(to, (*known)->properties());
    return {};
  });
}

template <typename VirtualDevice>
ResultCode make_virtual_device(int* device, VirtualDevice* members) noexcept {
  return api_call("makeVDevice", [&] {
    constexpr int kMax = sizeof members->devices / sizeof(int);
    const int count = members == nullptr ? 0 : members->count;
    return plugin::make_virtual_device(device, members ? members->devices : nullptr,
                                       count > kMax ? -1 : count);
  });
}

}  // namespace slime::plugin::table
