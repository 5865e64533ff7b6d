// Compile-time proof that our declarations have NCCL's layout on LP64. The numbers come from sizeof
// and offsetof on NCCL's own headers, compared from v2.13.4 to v2.30.7. Offsets that several
// versions have in common are checked by one function, which each of these versions must pass.
#include <cstddef>

#include "plugin/abi/collnet_tables.h"
#include "plugin/abi/net_tables.h"
#include "plugin/abi/tuner_tables.h"

// The structures inherit, so offsetof is conditionally supported. GCC and Clang support it, and a
// wrong answer would fail here.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

namespace slime::nccl {
namespace {

#define AT(field, offset) (offsetof(T, field) == (offset))

template <typename T, size_t kBytes>
constexpr bool kHasSize = sizeof(T) == kBytes;

static_assert(kHasSize<ResultCode, 4> && kHasSize<LogLevel, 4> && kHasSize<NetDeviceType, 4>);
static_assert(kHasSize<DataType, 4> && kHasSize<ReduceOp, 4> && kHasSize<Function, 4>);
static_assert(kHasSize<NetCommConfig, 4>);

template <typename T>
consteval bool is_device_handle() {
  return AT(type, 0) && AT(version, 4) && AT(handle, 8) && AT(size, 16) &&
         AT(needs_proxy_progress, 24);
}

static_assert(kHasSize<NetDeviceHandle, 32> && is_device_handle<NetDeviceHandle>());

template <typename T>
consteval bool is_attributes() {
  return AT(send, 0) && AT(receive, 16) && AT(operation, 32) && AT(algorithm, 36) &&
         AT(protocol, 40);
}

static_assert(kHasSize<NetAttributes, 44> && is_attributes<NetAttributes>());

template <typename T>
consteval bool is_virtual_device() {
  return AT(count, 0) && AT(devices, 4);
}

static_assert(kHasSize<VirtualDeviceV9, 20> && is_virtual_device<VirtualDeviceV9>());
static_assert(kHasSize<VirtualDeviceV12, 36> && is_virtual_device<VirtualDeviceV12>());

template <typename T>
consteval bool properties_from_v6() {
  return AT(name, 0) && AT(pci_path, 8) && AT(guid, 16) && AT(pointer_support, 24) &&
         AT(speed_mbps, 28) && AT(port, 32) && AT(latency_us, 36) && AT(max_comms, 40) &&
         AT(max_receives, 44);
}

template <typename T>
consteval bool properties_v7() {
  return properties_from_v6<T>() && AT(net_device_type, 48) && AT(net_device_version, 52);
}

template <typename T>
consteval bool properties_v8() {
  return AT(name, 0) && AT(pci_path, 8) && AT(guid, 16) && AT(pointer_support, 24) &&
         AT(registration_is_global, 28) && AT(speed_mbps, 32) && AT(port, 36) &&
         AT(latency_us, 40) && AT(max_comms, 44) && AT(max_receives, 48) &&
         AT(net_device_type, 52) && AT(net_device_version, 56);
}

template <typename T>
consteval bool properties_from_v9() {
  return AT(name, 0) && AT(pci_path, 8) && AT(guid, 16) && AT(pointer_support, 24) &&
         AT(registration_is_global, 28) && AT(force_flush, 32) && AT(speed_mbps, 36) &&
         AT(port, 40) && AT(latency_us, 44) && AT(max_comms, 48) && AT(max_receives, 52) &&
         AT(net_device_type, 56) && AT(net_device_version, 60) && AT(virtual_device, 64);
}

template <typename T>
consteval bool properties_v9() {
  return properties_from_v9<T>() && AT(max_p2p_bytes, 88) && AT(max_collective_bytes, 96);
}

template <typename T>
consteval bool properties_v11() {
  return properties_v9<T>() && AT(max_multi_request_size, 104);
}

template <typename T>
consteval bool properties_v12() {
  return properties_from_v9<T>() && AT(max_p2p_bytes, 104) && AT(max_collective_bytes, 112) &&
         AT(max_multi_request_size, 120) && AT(rail_id, 124) && AT(plane_id, 126);
}

static_assert(kHasSize<PropertiesV6, 48> && properties_from_v6<PropertiesV6>());
static_assert(kHasSize<PropertiesV7, 56> && properties_v7<PropertiesV7>());
static_assert(kHasSize<PropertiesV8, 64> && properties_v8<PropertiesV8>());
static_assert(kHasSize<PropertiesV9, 104> && properties_v9<PropertiesV9>());
static_assert(kHasSize<PropertiesV11, 112> && properties_v11<PropertiesV11>());
static_assert(kHasSize<PropertiesV12, 128> && properties_v12<PropertiesV12>());

// The tables have one pointer for each function.
template <typename T>
consteval bool net_from_v6() {
  return AT(name, 0) && AT(init, 8) && AT(devices, 16) && AT(get_properties, 24) &&
         AT(listen, 32) && AT(connect, 40) && AT(accept, 48) && AT(reg_mr, 56) &&
         AT(reg_mr_dma_buf, 64) && AT(dereg_mr, 72) && AT(isend, 80) && AT(irecv, 88) &&
         AT(iflush, 96) && AT(test, 104) && AT(close_send, 112) && AT(close_recv, 120) &&
         AT(close_listen, 128);
}

template <typename T>
consteval bool net_from_v7() {
  return net_from_v6<T>() && AT(get_device_mr, 136) && AT(irecv_consumed, 144);
}

template <typename T>
consteval bool net_from_v9() {
  return net_from_v7<T>() && AT(make_virtual_device, 152);
}

template <typename T>
consteval bool net_from_v11() {
  return net_from_v9<T>() && AT(finalize, 160) && AT(set_net_attributes, 168);
}

static_assert(kHasSize<NetV6, 136> && net_from_v6<NetV6>());
static_assert(kHasSize<NetV7, 152> && net_from_v7<NetV7>());
static_assert(kHasSize<NetV8, 152> && net_from_v7<NetV8>());
static_assert(kHasSize<NetV9, 160> && net_from_v9<NetV9>());
static_assert(kHasSize<NetV10, 160> && net_from_v9<NetV10>());
static_assert(kHasSize<NetV11, 176> && net_from_v11<NetV11>());
static_assert(kHasSize<NetV12, 176> && net_from_v11<NetV12>());

template <typename T>
consteval bool collnet_first() {
  return AT(name, 0) && AT(init, 8) && AT(devices, 16) && AT(get_properties, 24) &&
         AT(listen, 32) && AT(connect, 40) && AT(reduce_support, 48) && AT(reg_mr, 56) &&
         AT(reg_mr_dma_buf, 64) && AT(dereg_mr, 72) && AT(iallreduce, 80);
}

template <typename T>
consteval bool collnet_last(size_t first) {
  return AT(iflush, first) && AT(test, first + 8) && AT(close_coll, first + 16) &&
         AT(close_listen, first + 24);
}

template <typename T>
consteval bool collnet_from_v8() {
  return collnet_first<T>() && collnet_last<T>(104) && AT(iallgather, 88) && AT(ireducescatter, 96);
}

template <typename T>
consteval bool collnet_from_v9() {
  return collnet_from_v8<T>() && AT(make_virtual_device, 136);
}

template <typename T>
consteval bool collnet_from_v11() {
  return collnet_from_v9<T>() && AT(finalize, 144);
}

static_assert(kHasSize<CollNetV6, 120> && collnet_first<CollNetV6>() &&
              collnet_last<CollNetV6>(88));
static_assert(kHasSize<CollNetV7, 120> && collnet_first<CollNetV7>() &&
              collnet_last<CollNetV7>(88));
static_assert(kHasSize<CollNetV8, 136> && collnet_from_v8<CollNetV8>());
static_assert(kHasSize<CollNetV9, 144> && collnet_from_v9<CollNetV9>());
static_assert(kHasSize<CollNetV11, 152> && collnet_from_v11<CollNetV11>());
static_assert(kHasSize<CollNetV12, 152> && collnet_from_v11<CollNetV12>());

// All tables of the tuner have one size; only the signatures of the functions differ.
template <typename T>
consteval bool is_tuner() {
  return AT(name, 0) && AT(init, 8) && AT(get_coll_info, 16) && AT(destroy, 24);
}

static_assert(kHasSize<TunerV2, 32> && is_tuner<TunerV2>());
static_assert(kHasSize<TunerV3, 32> && is_tuner<TunerV3>());
static_assert(kHasSize<TunerV4, 32> && is_tuner<TunerV4>());
static_assert(kHasSize<TunerV5, 32> && is_tuner<TunerV5>());

#undef AT

}  // namespace
}  // namespace slime::nccl
