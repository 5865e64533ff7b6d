// Compile-time proof that our declarations have NCCL's layout on LP64. The numbers are those that
// sizeof and offsetof give for NCCL's own headers, compared from v2.13.4 to v2.30.7.
#include <cstddef>

#include "plugin/nccl_collnet_tables.h"
#include "plugin/nccl_net_tables.h"
#include "plugin/nccl_tuner_tables.h"

namespace slime::nccl {
namespace {

#define SLIME_SIZE(type, bytes) static_assert(sizeof(type) == (bytes), #type " has another size")
#define SLIME_AT(type, field, offset) \
  static_assert(offsetof(type, field) == (offset), #type "::" #field " has moved")

SLIME_SIZE(NetDeviceHandle, 32);
SLIME_AT(NetDeviceHandle, type, 0);
SLIME_AT(NetDeviceHandle, version, 4);
SLIME_AT(NetDeviceHandle, handle, 8);
SLIME_AT(NetDeviceHandle, size, 16);
SLIME_AT(NetDeviceHandle, needs_proxy_progress, 24);

SLIME_SIZE(NetCommConfig, 4);
SLIME_SIZE(NetAttributes, 44);
SLIME_AT(NetAttributes, receive, 16);
SLIME_AT(NetAttributes, operation, 32);
SLIME_AT(NetAttributes, algorithm, 36);
SLIME_AT(NetAttributes, protocol, 40);
SLIME_SIZE(ResultCode, 4);
SLIME_SIZE(LogLevel, 4);
SLIME_SIZE(NetDeviceType, 4);

SLIME_SIZE(VirtualDeviceV9, 20);
SLIME_AT(VirtualDeviceV9, devices, 4);
SLIME_SIZE(VirtualDeviceV12, 36);
SLIME_AT(VirtualDeviceV12, devices, 4);

SLIME_SIZE(PropertiesV6, 48);
SLIME_AT(PropertiesV6, name, 0);
SLIME_AT(PropertiesV6, pci_path, 8);
SLIME_AT(PropertiesV6, guid, 16);
SLIME_AT(PropertiesV6, pointer_support, 24);
SLIME_AT(PropertiesV6, speed_mbps, 28);
SLIME_AT(PropertiesV6, port, 32);
SLIME_AT(PropertiesV6, latency_us, 36);
SLIME_AT(PropertiesV6, max_comms, 40);
SLIME_AT(PropertiesV6, max_receives, 44);

SLIME_SIZE(PropertiesV7, 56);
SLIME_AT(PropertiesV7, name, 0);
SLIME_AT(PropertiesV7, pci_path, 8);
SLIME_AT(PropertiesV7, guid, 16);
SLIME_AT(PropertiesV7, pointer_support, 24);
SLIME_AT(PropertiesV7, speed_mbps, 28);
SLIME_AT(PropertiesV7, port, 32);
SLIME_AT(PropertiesV7, latency_us, 36);
SLIME_AT(PropertiesV7, max_comms, 40);
SLIME_AT(PropertiesV7, max_receives, 44);
SLIME_AT(PropertiesV7, net_device_type, 48);
SLIME_AT(PropertiesV7, net_device_version, 52);

SLIME_SIZE(PropertiesV8, 64);
SLIME_AT(PropertiesV8, name, 0);
SLIME_AT(PropertiesV8, pci_path, 8);
SLIME_AT(PropertiesV8, guid, 16);
SLIME_AT(PropertiesV8, pointer_support, 24);
SLIME_AT(PropertiesV8, registration_is_global, 28);
SLIME_AT(PropertiesV8, speed_mbps, 32);
SLIME_AT(PropertiesV8, port, 36);
SLIME_AT(PropertiesV8, latency_us, 40);
SLIME_AT(PropertiesV8, max_comms, 44);
SLIME_AT(PropertiesV8, max_receives, 48);
SLIME_AT(PropertiesV8, net_device_type, 52);
SLIME_AT(PropertiesV8, net_device_version, 56);

SLIME_SIZE(PropertiesV9, 104);
SLIME_AT(PropertiesV9, name, 0);
SLIME_AT(PropertiesV9, pci_path, 8);
SLIME_AT(PropertiesV9, guid, 16);
SLIME_AT(PropertiesV9, pointer_support, 24);
SLIME_AT(PropertiesV9, registration_is_global, 28);
SLIME_AT(PropertiesV9, force_flush, 32);
SLIME_AT(PropertiesV9, speed_mbps, 36);
SLIME_AT(PropertiesV9, port, 40);
SLIME_AT(PropertiesV9, latency_us, 44);
SLIME_AT(PropertiesV9, max_comms, 48);
SLIME_AT(PropertiesV9, max_receives, 52);
SLIME_AT(PropertiesV9, net_device_type, 56);
SLIME_AT(PropertiesV9, net_device_version, 60);
SLIME_AT(PropertiesV9, virtual_device, 64);
SLIME_AT(PropertiesV9, max_p2p_bytes, 88);
SLIME_AT(PropertiesV9, max_collective_bytes, 96);

SLIME_SIZE(PropertiesV11, 112);
SLIME_AT(PropertiesV11, name, 0);
SLIME_AT(PropertiesV11, pci_path, 8);
SLIME_AT(PropertiesV11, guid, 16);
SLIME_AT(PropertiesV11, pointer_support, 24);
SLIME_AT(PropertiesV11, registration_is_global, 28);
SLIME_AT(PropertiesV11, force_flush, 32);
SLIME_AT(PropertiesV11, speed_mbps, 36);
SLIME_AT(PropertiesV11, port, 40);
SLIME_AT(PropertiesV11, latency_us, 44);
SLIME_AT(PropertiesV11, max_comms, 48);
SLIME_AT(PropertiesV11, max_receives, 52);
SLIME_AT(PropertiesV11, net_device_type, 56);
SLIME_AT(PropertiesV11, net_device_version, 60);
SLIME_AT(PropertiesV11, virtual_device, 64);
SLIME_AT(PropertiesV11, max_p2p_bytes, 88);
SLIME_AT(PropertiesV11, max_collective_bytes, 96);
SLIME_AT(PropertiesV11, max_multi_request_size, 104);

SLIME_SIZE(PropertiesV12, 128);
SLIME_AT(PropertiesV12, name, 0);
SLIME_AT(PropertiesV12, pci_path, 8);
SLIME_AT(PropertiesV12, guid, 16);
SLIME_AT(PropertiesV12, pointer_support, 24);
SLIME_AT(PropertiesV12, registration_is_global, 28);
SLIME_AT(PropertiesV12, force_flush, 32);
SLIME_AT(PropertiesV12, speed_mbps, 36);
SLIME_AT(PropertiesV12, port, 40);
SLIME_AT(PropertiesV12, latency_us, 44);
SLIME_AT(PropertiesV12, max_comms, 48);
SLIME_AT(PropertiesV12, max_receives, 52);
SLIME_AT(PropertiesV12, net_device_type, 56);
SLIME_AT(PropertiesV12, net_device_version, 60);
SLIME_AT(PropertiesV12, virtual_device, 64);
SLIME_AT(PropertiesV12, max_p2p_bytes, 104);
SLIME_AT(PropertiesV12, max_collective_bytes, 112);
SLIME_AT(PropertiesV12, max_multi_request_size, 120);
SLIME_AT(PropertiesV12, rail_id, 124);
SLIME_AT(PropertiesV12, plane_id, 126);

SLIME_SIZE(NetV6, 136);
SLIME_AT(NetV6, name, 0);
SLIME_AT(NetV6, init, 8);
SLIME_AT(NetV6, devices, 16);
SLIME_AT(NetV6, get_properties, 24);
SLIME_AT(NetV6, listen, 32);
SLIME_AT(NetV6, connect, 40);
SLIME_AT(NetV6, accept, 48);
SLIME_AT(NetV6, reg_mr, 56);
SLIME_AT(NetV6, reg_mr_dma_buf, 64);
SLIME_AT(NetV6, dereg_mr, 72);
SLIME_AT(NetV6, isend, 80);
SLIME_AT(NetV6, irecv, 88);
SLIME_AT(NetV6, iflush, 96);
SLIME_AT(NetV6, test, 104);
SLIME_AT(NetV6, close_send, 112);
SLIME_AT(NetV6, close_recv, 120);
SLIME_AT(NetV6, close_listen, 128);

SLIME_SIZE(NetV7, 152);
SLIME_AT(NetV7, name, 0);
SLIME_AT(NetV7, init, 8);
SLIME_AT(NetV7, devices, 16);
SLIME_AT(NetV7, get_properties, 24);
SLIME_AT(NetV7, listen, 32);
SLIME_AT(NetV7, connect, 40);
SLIME_AT(NetV7, accept, 48);
SLIME_AT(NetV7, reg_mr, 56);
SLIME_AT(NetV7, reg_mr_dma_buf, 64);
SLIME_AT(NetV7, dereg_mr, 72);
SLIME_AT(NetV7, isend, 80);
SLIME_AT(NetV7, irecv, 88);
SLIME_AT(NetV7, iflush, 96);
SLIME_AT(NetV7, test, 104);
SLIME_AT(NetV7, close_send, 112);
SLIME_AT(NetV7, close_recv, 120);
SLIME_AT(NetV7, close_listen, 128);
SLIME_AT(NetV7, get_device_mr, 136);
SLIME_AT(NetV7, irecv_consumed, 144);

SLIME_SIZE(NetV8, 152);
SLIME_AT(NetV8, name, 0);
SLIME_AT(NetV8, init, 8);
SLIME_AT(NetV8, devices, 16);
SLIME_AT(NetV8, get_properties, 24);
SLIME_AT(NetV8, listen, 32);
SLIME_AT(NetV8, connect, 40);
SLIME_AT(NetV8, accept, 48);
SLIME_AT(NetV8, reg_mr, 56);
SLIME_AT(NetV8, reg_mr_dma_buf, 64);
SLIME_AT(NetV8, dereg_mr, 72);
SLIME_AT(NetV8, isend, 80);
SLIME_AT(NetV8, irecv, 88);
SLIME_AT(NetV8, iflush, 96);
SLIME_AT(NetV8, test, 104);
SLIME_AT(NetV8, close_send, 112);
SLIME_AT(NetV8, close_recv, 120);
SLIME_AT(NetV8, close_listen, 128);
SLIME_AT(NetV8, get_device_mr, 136);
SLIME_AT(NetV8, irecv_consumed, 144);

SLIME_SIZE(NetV9, 160);
SLIME_AT(NetV9, name, 0);
SLIME_AT(NetV9, init, 8);
SLIME_AT(NetV9, devices, 16);
SLIME_AT(NetV9, get_properties, 24);
SLIME_AT(NetV9, listen, 32);
SLIME_AT(NetV9, connect, 40);
SLIME_AT(NetV9, accept, 48);
SLIME_AT(NetV9, reg_mr, 56);
SLIME_AT(NetV9, reg_mr_dma_buf, 64);
SLIME_AT(NetV9, dereg_mr, 72);
SLIME_AT(NetV9, isend, 80);
SLIME_AT(NetV9, irecv, 88);
SLIME_AT(NetV9, iflush, 96);
SLIME_AT(NetV9, test, 104);
SLIME_AT(NetV9, close_send, 112);
SLIME_AT(NetV9, close_recv, 120);
SLIME_AT(NetV9, close_listen, 128);
SLIME_AT(NetV9, get_device_mr, 136);
SLIME_AT(NetV9, irecv_consumed, 144);
SLIME_AT(NetV9, make_virtual_device, 152);

SLIME_SIZE(NetV10, 160);
SLIME_AT(NetV10, name, 0);
SLIME_AT(NetV10, init, 8);
SLIME_AT(NetV10, devices, 16);
SLIME_AT(NetV10, get_properties, 24);
SLIME_AT(NetV10, listen, 32);
SLIME_AT(NetV10, connect, 40);
SLIME_AT(NetV10, accept, 48);
SLIME_AT(NetV10, reg_mr, 56);
SLIME_AT(NetV10, reg_mr_dma_buf, 64);
SLIME_AT(NetV10, dereg_mr, 72);
SLIME_AT(NetV10, isend, 80);
SLIME_AT(NetV10, irecv, 88);
SLIME_AT(NetV10, iflush, 96);
SLIME_AT(NetV10, test, 104);
SLIME_AT(NetV10, close_send, 112);
SLIME_AT(NetV10, close_recv, 120);
SLIME_AT(NetV10, close_listen, 128);
SLIME_AT(NetV10, get_device_mr, 136);
SLIME_AT(NetV10, irecv_consumed, 144);
SLIME_AT(NetV10, make_virtual_device, 152);

SLIME_SIZE(NetV11, 176);
SLIME_AT(NetV11, name, 0);
SLIME_AT(NetV11, init, 8);
SLIME_AT(NetV11, devices, 16);
SLIME_AT(NetV11, get_properties, 24);
SLIME_AT(NetV11, listen, 32);
SLIME_AT(NetV11, connect, 40);
SLIME_AT(NetV11, accept, 48);
SLIME_AT(NetV11, reg_mr, 56);
SLIME_AT(NetV11, reg_mr_dma_buf, 64);
SLIME_AT(NetV11, dereg_mr, 72);
SLIME_AT(NetV11, isend, 80);
SLIME_AT(NetV11, irecv, 88);
SLIME_AT(NetV11, iflush, 96);
SLIME_AT(NetV11, test, 104);
SLIME_AT(NetV11, close_send, 112);
SLIME_AT(NetV11, close_recv, 120);
SLIME_AT(NetV11, close_listen, 128);
SLIME_AT(NetV11, get_device_mr, 136);
SLIME_AT(NetV11, irecv_consumed, 144);
SLIME_AT(NetV11, make_virtual_device, 152);
SLIME_AT(NetV11, finalize, 160);
SLIME_AT(NetV11, set_net_attributes, 168);

SLIME_SIZE(NetV12, 176);
SLIME_AT(NetV12, name, 0);
SLIME_AT(NetV12, init, 8);
SLIME_AT(NetV12, devices, 16);
SLIME_AT(NetV12, get_properties, 24);
SLIME_AT(NetV12, listen, 32);
SLIME_AT(NetV12, connect, 40);
SLIME_AT(NetV12, accept, 48);
SLIME_AT(NetV12, reg_mr, 56);
SLIME_AT(NetV12, reg_mr_dma_buf, 64);
SLIME_AT(NetV12, dereg_mr, 72);
SLIME_AT(NetV12, isend, 80);
SLIME_AT(NetV12, irecv, 88);
SLIME_AT(NetV12, iflush, 96);
SLIME_AT(NetV12, test, 104);
SLIME_AT(NetV12, close_send, 112);
SLIME_AT(NetV12, close_recv, 120);
SLIME_AT(NetV12, close_listen, 128);
SLIME_AT(NetV12, get_device_mr, 136);
SLIME_AT(NetV12, irecv_consumed, 144);
SLIME_AT(NetV12, make_virtual_device, 152);
SLIME_AT(NetV12, finalize, 160);
SLIME_AT(NetV12, set_net_attributes, 168);

// One pointer a function: size says how many there are, the offsets which stand where versions
// differ.
using CollNetV7 = CollNetV6<PropertiesV7>;
using CollNetV12 = CollNetV11<PropertiesV12, VirtualDeviceV12>;
SLIME_SIZE(CollNetV7, 120);
SLIME_AT(CollNetV7, connect, 40);
SLIME_AT(CollNetV7, iallreduce, 80);
SLIME_AT(CollNetV7, iflush, 88);
SLIME_AT(CollNetV7, close_listen, 112);
SLIME_SIZE(CollNetV8, 136);
SLIME_AT(CollNetV8, reduce_support, 48);
SLIME_AT(CollNetV8, iallgather, 88);
SLIME_AT(CollNetV8, iflush, 104);
SLIME_AT(CollNetV8, close_listen, 128);
SLIME_SIZE(CollNetV9, 144);
SLIME_AT(CollNetV9, close_listen, 128);
SLIME_AT(CollNetV9, make_virtual_device, 136);
SLIME_SIZE(CollNetV12, 152);
SLIME_AT(CollNetV12, listen, 32);
SLIME_AT(CollNetV12, make_virtual_device, 136);
SLIME_AT(CollNetV12, finalize, 144);
SLIME_SIZE(DataType, 4);
SLIME_SIZE(ReduceOp, 4);

// The tuner's tables are all of one size: what differs is behind the pointers.
SLIME_SIZE(TunerV2, 32);
SLIME_AT(TunerV2, init, 8);
SLIME_AT(TunerV2, get_coll_info, 16);
SLIME_AT(TunerV2, destroy, 24);
SLIME_SIZE(TunerV3, 32);
SLIME_AT(TunerV3, init, 8);
SLIME_AT(TunerV3, get_coll_info, 16);
SLIME_AT(TunerV3, destroy, 24);
SLIME_SIZE(TunerV4, 32);
SLIME_AT(TunerV4, init, 8);
SLIME_AT(TunerV4, get_coll_info, 16);
SLIME_AT(TunerV4, destroy, 24);
SLIME_SIZE(TunerV5, 32);
SLIME_AT(TunerV5, init, 8);
SLIME_AT(TunerV5, get_coll_info, 16);
SLIME_AT(TunerV5, finalize, 24);
SLIME_SIZE(Function, 4);

#undef SLIME_AT
#undef SLIME_SIZE

}  // namespace
}  // namespace slime::nccl
