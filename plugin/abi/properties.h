// ncclNetProperties_v6 ... v12: the properties of a device in each version.
//
// NCCL inserts fields in the middle, so a version is a list of groups, and each group stands once.
// Groups have no padding at their ends, so the groups of a version lie in memory as NCCL's own
// structure does (abi/layout_check.cc).
#pragma once

#include "plugin/abi/types.h"

namespace slime::nccl {

// ncclNetVDeviceProps_v9 ... v11, and v12
template <int kMaxDevices>
struct VirtualDevice {
  int count;
  int devices[kMaxDevices];
};
using VirtualDeviceV9 = VirtualDevice<kMaxDevicesPerNic>;
using VirtualDeviceV12 = VirtualDevice<kMaxDevicesPerNicV12>;

struct PropertiesIdentity {
  char* name;
  char* pci_path;
  uint64_t guid;
};
struct PropertiesPointers {
  int pointer_support;
};
struct PropertiesRegistration {  // from v8
  int registration_is_global;
};
struct PropertiesFlush {  // from v9
  int force_flush;
};
struct PropertiesPort {
  int speed_mbps;
  int port;
  float latency_us;
  int max_comms;
  int max_receives;
};
struct PropertiesOffload {  // from v7
  NetDeviceType net_device_type;
  int net_device_version;
};
template <typename Members>
struct PropertiesMerging {  // from v9
  Members virtual_device;
  size_t max_p2p_bytes;
  size_t max_collective_bytes;
};

struct PropertiesV6 : PropertiesIdentity, PropertiesPointers, PropertiesPort {};

struct PropertiesV7 : PropertiesV6, PropertiesOffload {};

struct PropertiesV8 : PropertiesIdentity,
                      PropertiesPointers,
                      PropertiesRegistration,
                      PropertiesPort,
                      PropertiesOffload {};

template <typename Members>
struct PropertiesFromV9 : PropertiesIdentity,
                          PropertiesPointers,
                          PropertiesRegistration,
                          PropertiesFlush,
                          PropertiesPort,
                          PropertiesOffload,
                          PropertiesMerging<Members> {};

using PropertiesV9 = PropertiesFromV9<VirtualDeviceV9>;
using PropertiesV10 = PropertiesV9;

struct PropertiesV11 : PropertiesV9 {
  int max_multi_request_size;
};

struct PropertiesV12 : PropertiesFromV9<VirtualDeviceV12> {
  int max_multi_request_size;
  int16_t rail_id;
  int16_t plane_id;
};

}  // namespace slime::nccl
