// ncclNetPlugin_v6 ... v12. The functions of all versions stand side by side as overloads, the
// oldest first; the type of a table's entry (abi/net_tables.h) chooses among them.
#include "plugin/net_tables.h"

#include "plugin/abi/net_tables.h"

namespace slime::plugin::net {
namespace {

using nccl::NetDeviceHandle;
using nccl::ResultCode;
using table::get_properties;
using table::init;
using table::make_virtual_device;

// v10. The plugin defines no network events, so it does not call the profiler.
ResultCode init(nccl::Logger logger, nccl::ProfilerCallback /*profiler*/) noexcept {
  return init(logger);
}

// v11
ResultCode init(void** context, uint64_t comm_id, const nccl::NetCommConfig* config,
                nccl::Logger logger, nccl::ProfilerCallback /*profiler*/) noexcept {
  return api_call("init", [&] { return init_context(context, comm_id, config, logger); });
}

ResultCode listen(int device, void* handle, void** comm) noexcept {
  return api_call("listen",
                  [&] { return plugin::listen(CommKind::kListen, device, handle, comm, {}); });
}

// v11
ResultCode listen(void* context, int device, void* handle, void** comm) noexcept {
  return api_call("listen", [&] {
    return plugin::listen(CommKind::kListen, device, handle, comm, {traffic_class_of(context)});
  });
}

ResultCode connect(int device, void* handle, void** comm) noexcept {
  return api_call("connect", [&] {
    return plugin::connect(device, handle, comm, nccl::kTrafficClassUndefined);
  });
}

// v7. *device_handle belongs to device offload, which the plugin does not offer, so it is not set.
ResultCode connect(int device, void* handle, void** comm,
                   NetDeviceHandle** /*device_handle*/) noexcept {
  return connect(device, handle, comm);
}

// v10. Only the connecting end gets the traffic class.
ResultCode connect(int device, const nccl::NetCommConfig* config, void* handle, void** comm,
                   NetDeviceHandle** /*device_handle*/) noexcept {
  return api_call("connect", [&] {
    return plugin::connect(device, handle, comm, checked_traffic_class(config));
  });
}

// v11
ResultCode connect(void* context, int device, void* handle, void** comm,
                   NetDeviceHandle** /*device_handle*/) noexcept {
  return api_call("connect",
                  [&] { return plugin::connect(device, handle, comm, traffic_class_of(context)); });
}

ResultCode accept(void* listen_comm, void** comm) noexcept {
  return api_call("accept", [&] { return plugin::accept(listen_comm, comm); });
}

// v7
ResultCode accept(void* listen_comm, void** comm, NetDeviceHandle** /*device_handle*/) noexcept {
  return accept(listen_comm, comm);
}

// Size: tables before v8 pass `bytes` as int, later ones as size_t.
template <typename Size>
ResultCode reg_mr(void* comm, void* data, Size bytes, int type, void** mhandle) noexcept {
  return api_call("regMr", [&] {
    return register_memory(comm, data, static_cast<size_t>(bytes), type, mhandle);
  });
}

// Size: tables before v9 pass `bytes` as int, later ones as size_t.
template <typename Size>
ResultCode isend(void* comm, void* data, Size bytes, int tag, void* mhandle,
                 void** request) noexcept {
  return api_call("isend", [&] {
    return plugin::isend(comm, data, static_cast<size_t>(bytes), tag, mhandle, request);
  });
}

// v10
ResultCode isend(void* comm, void* data, size_t bytes, int tag, void* mhandle, void* /*profile*/,
                 void** request) noexcept {
  return isend(comm, data, bytes, tag, mhandle, request);
}

// Tables before v9 have no optional completion. NCCL's adapters clear *request for them; older NCCL
// leaves any value there.
ResultCode irecv(void* comm, int n, void** data, int* sizes, int* tags, void** mhandles,
                 void** request) noexcept {
  return api_call("irecv", [&] {
    return plugin::irecv(comm, {n, data, tags, mhandles}, sizes, false, request);
  });
}

// v9
ResultCode irecv(void* comm, int n, void** data, size_t* sizes, int* tags, void** mhandles,
                 void** request) noexcept {
  return api_call("irecv", [&] {
    const bool optional =
        request != nullptr && *request == reinterpret_cast<void*>(nccl::kOptionalReceiveCompletion);
    return plugin::irecv(comm, {n, data, tags, mhandles}, sizes, optional, request);
  });
}

// v10
ResultCode irecv(void* comm, int n, void** data, size_t* sizes, int* tags, void** mhandles,
                 void** /*profiles*/, void** request) noexcept {
  return irecv(comm, n, data, sizes, tags, mhandles, request);
}

ResultCode iflush(void* comm, int n, void** data, int* sizes, void** mhandles,
                  void** request) noexcept {
  return api_call("iflush", [&] {
    return plugin::iflush(comm, {n, data, sizes, mhandles}, request);
  });
}

// A hint about the coming transfers, which the plugin does not use.
ResultCode set_net_attributes(void* /*context*/,
                              const nccl::NetAttributes* /*attributes*/) noexcept {
  return nccl::kSuccess;
}

template <typename Table>
constexpr Table make_table() {
  Table table{};  // getDeviceMr and irecvConsumed, of v7, stay NULL: NCCL does not call them then
  table.name = kPluginName;
  table.init = init;
  table.devices = api_function<"devices", plugin::devices>;
  table.get_properties = get_properties;
  table.listen = listen;
  table.connect = connect;
  table.accept = accept;
  table.reg_mr = reg_mr;
  table.reg_mr_dma_buf = api_function<"regMrDmaBuf", register_dma_buf>;
  table.dereg_mr = api_function<"deregMr", deregister_memory>;
  table.isend = isend;
  table.irecv = irecv;
  table.iflush = iflush;
  table.test = api_function<"test", plugin::test>;
  table.close_send = api_function<"closeSend", close_comm<CommKind::kSend>>;
  table.close_recv = api_function<"closeRecv", close_comm<CommKind::kRecv>>;
  table.close_listen = api_function<"closeListen", close_comm<CommKind::kListen>>;
  if constexpr (requires { table.make_virtual_device; }) {
    table.make_virtual_device = make_virtual_device;
  }
  if constexpr (requires { table.finalize; }) {
    table.finalize = api_function<"finalize", plugin::finalize>;
    table.set_net_attributes = set_net_attributes;
  }
  return table;
}

}  // namespace

SLIME_EXPORT constinit const nccl::NetV6 ncclNetPlugin_v6 = make_table<nccl::NetV6>();
SLIME_EXPORT constinit const nccl::NetV7 ncclNetPlugin_v7 = make_table<nccl::NetV7>();
SLIME_EXPORT constinit const nccl::NetV8 ncclNetPlugin_v8 = make_table<nccl::NetV8>();
SLIME_EXPORT constinit const nccl::NetV9 ncclNetPlugin_v9 = make_table<nccl::NetV9>();
SLIME_EXPORT constinit const nccl::NetV10 ncclNetPlugin_v10 = make_table<nccl::NetV10>();
SLIME_EXPORT constinit const nccl::NetV11 ncclNetPlugin_v11 = make_table<nccl::NetV11>();
SLIME_EXPORT constinit const nccl::NetV12 ncclNetPlugin_v12 = make_table<nccl::NetV12>();

}  // namespace slime::plugin::net
