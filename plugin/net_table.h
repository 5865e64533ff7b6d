// Adapters from NCCL's signatures to plugin/net.h. Versions differ in the type of sizes, in extra
// arguments and in the properties, so one template serves several tables.
#pragma once

#include "plugin/boundary.h"
#include "plugin/nccl_net_tables.h"
#include "plugin/net.h"

#define SLIME_EXPORT extern "C" [[gnu::visibility("default")]]

namespace slime::plugin::table {

using nccl::NetDeviceHandle;
using nccl::ResultCode;

inline constexpr char kName[] = "SLIME";  // what NCCL_NET must say to pick us

inline ResultCode init_v6(nccl::Logger logger) noexcept {
  return boundary("init", [&] { return init(logger); });
}

inline ResultCode init_v10(nccl::Logger logger, nccl::ProfilerCallback /*profiler*/) noexcept {
  return boundary("init", [&] { return init(logger); });
}

inline ResultCode init_v11(void** context, uint64_t comm_id, const nccl::NetCommConfig* config,
                           nccl::Logger logger, nccl::ProfilerCallback /*profiler*/) noexcept {
  return boundary("init", [&] { return init_context(context, comm_id, config, logger); });
}

inline ResultCode devices_v6(int* count) noexcept {
  return boundary("devices", [&] { return devices(count); });
}

template <typename Properties>
void fill_virtual_device(Properties* to, const NetProperties& from) {
  constexpr size_t kMax = sizeof to->virtual_device.devices / sizeof(int);
  to->virtual_device = {};
  for (size_t i = 0; i < from.members.size() && i < kMax; ++i) {
    to->virtual_device.devices[to->virtual_device.count++] = from.members[i];
  }
}

// Fields that a version lacks are skipped.
template <typename Properties>
void fill(Properties* to, const NetProperties& from) {
  *to = {};
  to->name = const_cast<char*>(from.name);
  to->pci_path = const_cast<char*>(from.pci_path);
  to->guid = from.guid;
  to->pointer_support = from.pointer_support;
  to->speed_mbps = from.speed_mbps;
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
  return boundary("getProperties", [&]() -> Result<void> {
    if (to == nullptr) return fail(make_error(Status::kInvalid, 0, "props is NULL"));
    const auto known = properties(device);
    if (!known) return fail(known.error());
    fill(to, *known);
    return {};
  });
}

inline ResultCode listen_v6(int device, void* handle, void** comm) noexcept {
  return boundary("listen",
                  [&] { return listen(device, handle, comm, nccl::kTrafficClassUndefined); });
}

inline ResultCode listen_v11(void* context, int device, void* handle, void** comm) noexcept {
  return boundary("listen",
                  [&] { return listen(device, handle, comm, traffic_class_of(context)); });
}

inline ResultCode connect_v6(int device, void* handle, void** comm) noexcept {
  return boundary("connect",
                  [&] { return connect(device, handle, comm, nccl::kTrafficClassUndefined); });
}

// *device_handle belongs to device offload, which we do not offer: it stays as it is.
inline ResultCode connect_v7(int device, void* handle, void** comm,
                             NetDeviceHandle** /*device_handle*/) noexcept {
  return connect_v6(device, handle, comm);
}

// This version tells the connecting end alone.
inline ResultCode connect_v10(int device, const nccl::NetCommConfig* config, void* handle,
                              void** comm, NetDeviceHandle** /*device_handle*/) noexcept {
  return boundary("connect",
                  [&] { return connect(device, handle, comm, checked_traffic_class(config)); });
}

inline ResultCode connect_v11(void* context, int device, void* handle, void** comm,
                              NetDeviceHandle** /*device_handle*/) noexcept {
  return boundary("connect",
                  [&] { return connect(device, handle, comm, traffic_class_of(context)); });
}

inline ResultCode accept_v6(void* listen_comm, void** comm) noexcept {
  return boundary("accept", [&] { return accept(listen_comm, comm); });
}

inline ResultCode accept_v7(void* listen_comm, void** comm,
                            NetDeviceHandle** /*device_handle*/) noexcept {
  return accept_v6(listen_comm, comm);
}

template <typename Size>
ResultCode reg_mr(void* comm, void* data, Size bytes, int type, void** mhandle) noexcept {
  return boundary("regMr", [&] {
    return register_memory(comm, data, static_cast<size_t>(bytes), type, mhandle);
  });
}

inline ResultCode reg_mr_dma_buf(void* comm, void* data, size_t bytes, int type, uint64_t offset,
                                 int fd, void** mhandle) noexcept {
  return boundary("regMrDmaBuf", [&] {
    return register_dma_buf(comm, data, bytes, type, {fd, offset}, mhandle);
  });
}

inline ResultCode dereg_mr(void* comm, void* mhandle) noexcept {
  return boundary("deregMr", [&] { return deregister_memory(comm, mhandle); });
}

template <typename Size>
ResultCode isend_v6(void* comm, void* data, Size bytes, int tag, void* mhandle,
                    void** request) noexcept {
  return boundary("isend", [&] {
    return isend(comm, data, static_cast<size_t>(bytes), tag, mhandle, request);
  });
}

inline ResultCode isend_v10(void* comm, void* data, size_t bytes, int tag, void* mhandle,
                            void* /*profile*/, void** request) noexcept {
  return isend_v6<size_t>(comm, data, bytes, tag, mhandle, request);
}

// Tables before v9 know no optional completion; NCCL's adapters clear *request for them, older
// NCCL leaves there what it likes.
inline ResultCode irecv_v6(void* comm, int n, void** data, int* sizes, int* tags, void** mhandles,
                           void** request) noexcept {
  return boundary("irecv", [&] {
    return irecv(comm, {n, data, tags, mhandles}, sizes, false, request);
  });
}

inline ResultCode irecv_v9(void* comm, int n, void** data, size_t* sizes, int* tags,
                           void** mhandles, void** request) noexcept {
  return boundary("irecv", [&] {
    const bool optional =
        request != nullptr && *request == reinterpret_cast<void*>(nccl::kOptionalReceiveCompletion);
    return irecv(comm, {n, data, tags, mhandles}, sizes, optional, request);
  });
}

inline ResultCode irecv_v10(void* comm, int n, void** data, size_t* sizes, int* tags,
                            void** mhandles, void** /*profiles*/, void** request) noexcept {
  return irecv_v9(comm, n, data, sizes, tags, mhandles, request);
}

inline ResultCode iflush_v6(void* comm, int n, void** data, int* sizes, void** mhandles,
                            void** request) noexcept {
  return boundary("iflush", [&] { return iflush(comm, {n, data, sizes, mhandles}, request); });
}

inline ResultCode test_v6(void* request, int* done, int* sizes) noexcept {
  return boundary("test", [&] { return test(request, done, sizes); });
}

inline ResultCode close_send_v6(void* comm) noexcept {
  return boundary("closeSend", [&] { return close_send(comm); });
}

inline ResultCode close_recv_v6(void* comm) noexcept {
  return boundary("closeRecv", [&] { return close_recv(comm); });
}

inline ResultCode close_listen_v6(void* comm) noexcept {
  return boundary("closeListen", [&] { return close_listen(comm); });
}

template <typename VirtualDevice>
ResultCode make_vdevice(int* device, VirtualDevice* members) noexcept {
  return boundary("makeVDevice", [&] {
    constexpr int kMax = sizeof members->devices / sizeof(int);
    const int count = members == nullptr ? 0 : members->count;
    return make_virtual_device(device, members ? members->devices : nullptr,
                               count > kMax ? -1 : count);
  });
}

inline ResultCode finalize_v11(void* context) noexcept {
  return boundary("finalize", [&] { return finalize(context); });
}

// A hint about the transfers to come; nothing here depends on it.
inline ResultCode set_net_attributes_v11(void* /*context*/,
                                         const nccl::NetAttributes* /*attributes*/) noexcept {
  return boundary("setNetAttr", [] { return Result<void>{}; });
}

}  // namespace slime::plugin::table
