// Compile-time proof that our declarations have NCCL's layout on LP64. The numbers are those that
// sizeof and offsetof give for NCCL's own headers, compared from v2.13.4 to v2.30.7. What several
// versions have at the same offsets is a macro, which each of these versions must pass.
#include <cstddef>

#include "plugin/abi/collnet_tables.h"
#include "plugin/abi/net_tables.h"
#include "plugin/abi/tuner_tables.h"

// The structures inherit, so offsetof is for the compiler to define. GCC and Clang do, and a wrong
// answer would fail here.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

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

#define SLIME_PROPERTIES_FROM_V6(type) \
  SLIME_AT(type, name, 0);             \
  SLIME_AT(type, pci_path, 8);         \
  SLIME_AT(type, guid, 16);            \
  SLIME_AT(type, pointer_support, 24); \
  SLIME_AT(type, speed_mbps, 28);      \
  SLIME_AT(type, port, 32);            \
  SLIME_AT(type, latency_us, 36);      \
  SLIME_AT(type, max_comms, 40);       \
  SLIME_AT(type, max_receives, 44)

SLIME_SIZE(PropertiesV6, 48);
SLIME_PROPERTIES_FROM_V6(PropertiesV6);
SLIME_SIZE(PropertiesV7, 56);
SLIME_PROPERTIES_FROM_V6(PropertiesV7);
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

#define SLIME_PROPERTIES_FROM_V9(type)        \
  SLIME_AT(type, name, 0);                    \
  SLIME_AT(type, pci_path, 8);                \
  SLIME_AT(type, guid, 16);                   \
  SLIME_AT(type, pointer_support, 24);        \
  SLIME_AT(type, registration_is_global, 28); \
  SLIME_AT(type, force_flush, 32);            \
  SLIME_AT(type, speed_mbps, 36);             \
  SLIME_AT(type, port, 40);                   \
  SLIME_AT(type, latency_us, 44);             \
  SLIME_AT(type, max_comms, 48);              \
  SLIME_AT(type, max_receives, 52);           \
  SLIME_AT(type, net_device_type, 56);        \
  SLIME_AT(type, net_device_version, 60);     \
  SLIME_AT(type, virtual_device, 64)

SLIME_SIZE(PropertiesV9, 104);
SLIME_PROPERTIES_FROM_V9(PropertiesV9);
SLIME_AT(PropertiesV9, max_p2p_bytes, 88);
SLIME_AT(PropertiesV9, max_collective_bytes, 96);
SLIME_SIZE(PropertiesV11, 112);
SLIME_PROPERTIES_FROM_V9(PropertiesV11);
SLIME_AT(PropertiesV11, max_p2p_bytes, 88);
SLIME_AT(PropertiesV11, max_collective_bytes, 96);
SLIME_AT(PropertiesV11, max_multi_request_size, 104);
SLIME_SIZE(PropertiesV12, 128);
SLIME_PROPERTIES_FROM_V9(PropertiesV12);
SLIME_AT(PropertiesV12, max_p2p_bytes, 104);
SLIME_AT(PropertiesV12, max_collective_bytes, 112);
SLIME_AT(PropertiesV12, max_multi_request_size, 120);
SLIME_AT(PropertiesV12, rail_id, 124);
SLIME_AT(PropertiesV12, plane_id, 126);

// The tables: one pointer a function.
#define SLIME_NET_FROM_V6(type)       \
  SLIME_AT(type, name, 0);            \
  SLIME_AT(type, init, 8);            \
  SLIME_AT(type, devices, 16);        \
  SLIME_AT(type, get_properties, 24); \
  SLIME_AT(type, listen, 32);         \
  SLIME_AT(type, connect, 40);        \
  SLIME_AT(type, accept, 48);         \
  SLIME_AT(type, reg_mr, 56);         \
  SLIME_AT(type, reg_mr_dma_buf, 64); \
  SLIME_AT(type, dereg_mr, 72);       \
  SLIME_AT(type, isend, 80);          \
  SLIME_AT(type, irecv, 88);          \
  SLIME_AT(type, iflush, 96);         \
  SLIME_AT(type, test, 104);          \
  SLIME_AT(type, close_send, 112);    \
  SLIME_AT(type, close_recv, 120);    \
  SLIME_AT(type, close_listen, 128)
#define SLIME_NET_FROM_V7(type)       \
  SLIME_NET_FROM_V6(type);            \
  SLIME_AT(type, get_device_mr, 136); \
  SLIME_AT(type, irecv_consumed, 144)
#define SLIME_NET_FROM_V9(type) \
  SLIME_NET_FROM_V7(type);      \
  SLIME_AT(type, make_virtual_device, 152)
#define SLIME_NET_FROM_V11(type) \
  SLIME_NET_FROM_V9(type);       \
  SLIME_AT(type, finalize, 160); \
  SLIME_AT(type, set_net_attributes, 168)

SLIME_SIZE(NetV6, 136);
SLIME_NET_FROM_V6(NetV6);
SLIME_SIZE(NetV7, 152);
SLIME_NET_FROM_V7(NetV7);
SLIME_SIZE(NetV8, 152);
SLIME_NET_FROM_V7(NetV8);
SLIME_SIZE(NetV9, 160);
SLIME_NET_FROM_V9(NetV9);
SLIME_SIZE(NetV10, 160);
SLIME_NET_FROM_V9(NetV10);
SLIME_SIZE(NetV11, 176);
SLIME_NET_FROM_V11(NetV11);
SLIME_SIZE(NetV12, 176);
SLIME_NET_FROM_V11(NetV12);

#define SLIME_COLLNET_FIRST(type)     \
  SLIME_AT(type, name, 0);            \
  SLIME_AT(type, init, 8);            \
  SLIME_AT(type, devices, 16);        \
  SLIME_AT(type, get_properties, 24); \
  SLIME_AT(type, listen, 32);         \
  SLIME_AT(type, connect, 40);        \
  SLIME_AT(type, reduce_support, 48); \
  SLIME_AT(type, reg_mr, 56);         \
  SLIME_AT(type, reg_mr_dma_buf, 64); \
  SLIME_AT(type, dereg_mr, 72);       \
  SLIME_AT(type, iallreduce, 80)
#define SLIME_COLLNET_LAST(type, first)     \
  SLIME_AT(type, iflush, first);            \
  SLIME_AT(type, test, (first) + 8);        \
  SLIME_AT(type, close_coll, (first) + 16); \
  SLIME_AT(type, close_listen, (first) + 24)
#define SLIME_COLLNET_FROM_V8(type)   \
  SLIME_COLLNET_FIRST(type);          \
  SLIME_AT(type, iallgather, 88);     \
  SLIME_AT(type, ireducescatter, 96); \
  SLIME_COLLNET_LAST(type, 104)

SLIME_SIZE(CollNetV6, 120);
SLIME_COLLNET_FIRST(CollNetV6);
SLIME_COLLNET_LAST(CollNetV6, 88);
SLIME_SIZE(CollNetV7, 120);
SLIME_COLLNET_FIRST(CollNetV7);
SLIME_COLLNET_LAST(CollNetV7, 88);
SLIME_SIZE(CollNetV8, 136);
SLIME_COLLNET_FROM_V8(CollNetV8);
SLIME_SIZE(CollNetV9, 144);
SLIME_COLLNET_FROM_V8(CollNetV9);
SLIME_AT(CollNetV9, make_virtual_device, 136);
SLIME_SIZE(CollNetV11, 152);
SLIME_COLLNET_FROM_V8(CollNetV11);
SLIME_AT(CollNetV11, make_virtual_device, 136);
SLIME_AT(CollNetV11, finalize, 144);
SLIME_SIZE(CollNetV12, 152);
SLIME_COLLNET_FROM_V8(CollNetV12);
SLIME_AT(CollNetV12, make_virtual_device, 136);
SLIME_AT(CollNetV12, finalize, 144);
SLIME_SIZE(DataType, 4);
SLIME_SIZE(ReduceOp, 4);

// All tables of the tuner have one size: what differs is behind the pointers.
#define SLIME_TUNER(type)            \
  SLIME_AT(type, name, 0);           \
  SLIME_AT(type, init, 8);           \
  SLIME_AT(type, get_coll_info, 16); \
  SLIME_AT(type, destroy, 24)
SLIME_SIZE(TunerV2, 32);
SLIME_TUNER(TunerV2);
SLIME_SIZE(TunerV3, 32);
SLIME_TUNER(TunerV3);
SLIME_SIZE(TunerV4, 32);
SLIME_TUNER(TunerV4);
SLIME_SIZE(TunerV5, 32);
SLIME_TUNER(TunerV5);
SLIME_SIZE(Function, 4);

}  // namespace
}  // namespace slime::nccl
