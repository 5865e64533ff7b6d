// ncclNetProperties_v6 ... v12. NCCL inserts fields in the middle, so every version is written out.
#pragma once

#include "plugin/nccl_abi.h"

namespace slime::nccl {

// ncclNetVDeviceProps_v9 ... v11, and v12
template <int kMaxDevices>
struct VirtualDevice {
  int count;
  int devices[kMaxDevices];
};
using VirtualDeviceV9 = VirtualDevice<kMaxDevicesPerNic>;
using VirtualDeviceV12 = VirtualDevice<kMaxDevicesPerNicV12>;

struct PropertiesV6 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointer_support;
  int speed_mbps;
  int port;
  float latency_us;
  int max_comms;
  int max_receives;
};

struct PropertiesV7 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointer_support;
  int speed_mbps;
  int port;
  float latency_us;
  int max_comms;
  int max_receives;
  NetDeviceType net_device_type;
  int net_device_version;
};

struct PropertiesV8 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointer_support;
  int registration_is_global;
  int speed_mbps;
  int port;
  float latency_us;
  int max_comms;
  int max_receives;
  NetDeviceType net_device_type;
  int net_device_version;
};

struct PropertiesV9 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointer_support;
  int registration_is_global;
  int force_flush;
  int speed_mbps;
  int port;
  float latency_us;
  int max_comms;
  int max_receives;
  NetDeviceType net_device_type;
  int net_device_version;
  VirtualDeviceV9 virtual_device;
  size_t max_p2p_bytes;
  size_t max_collective_bytes;
};
using PropertiesV10 = PropertiesV9;

struct PropertiesV11 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointer_support;
  int registration_is_global;
  int force_flush;
  int speed_mbps;
  int port;
  float latency_us;
  int max_comms;
  int max_receives;
  NetDeviceType net_device_type;
  int net_device_version;
  VirtualDeviceV9 virtual_device;
  size_t max_p2p_bytes;
  size_t max_collective_bytes;
  int max_multi_request_size;
};

struct PropertiesV12 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointer_support;
  int registration_is_global;
  int force_flush;
  int speed_mbps;
  int port;
  float latency_us;
  int max_comms;
  int max_receives;
  NetDeviceType net_device_type;
  int net_device_version;
  VirtualDeviceV12 virtual_device;
  size_t max_p2p_bytes;
  size_t max_collective_bytes;
  int max_multi_request_size;
  int16_t rail_id;
  int16_t plane_id;
};

}  // namespace slime::nccl
