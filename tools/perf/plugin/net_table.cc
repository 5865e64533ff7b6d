#include "tools/perf/plugin/net_table.h"

#include <dlfcn.h>

#include <memory>
#include <type_traits>

#include "plugin/abi/collnet_tables.h"
#include "plugin/abi/net_tables.h"

namespace slime::perf {
namespace {

// What a bound table keeps between its calls.
struct BoundState {
  void* context = nullptr;
  void* profile = nullptr;  // what NCCL passes without a profiler: a pointer to a null handle
  nccl::NetCommConfig config{nccl::kTrafficClassUndefined};
};

// What is the same in both kinds.
template <int kVersion, typename Table>
void bind_common(const Table* table, const std::shared_ptr<BoundState>& state, PluginTable* out) {
  out->version = kVersion;
  out->name = table->name;
  out->devices = table->devices;
  out->dereg_mr = table->dereg_mr;
  out->close_listen = table->close_listen;
  out->test = table->test;
  out->finalize = [=]() -> Code {
    if constexpr (kVersion >= 11) return table->finalize(state->context);
    return nccl::kSuccess;
  };
  out->listen = [=](int device, void* handle, void** comm) -> Code {
    if constexpr (kVersion >= 11) {
      return table->listen(state->context, device, handle, comm);
    } else {
      return table->listen(device, handle, comm);
    }
  };
  out->reg_mr = [=](void* comm, void* data, size_t bytes, void** mhandle) -> Code {
    if constexpr (kVersion <= 7) {
      // NCCL's shim for these tables refuses what an int cannot hold (net_v7.cc).
      if (bytes >= size_t{1} << 31) return nccl::kInternalError;
      return table->reg_mr(comm, data, static_cast<int>(bytes), nccl::kPointerHost, mhandle);
    } else {
      return table->reg_mr(comm, data, bytes, nccl::kPointerHost, mhandle);
    }
  };
}

template <int kVersion, typename Properties, typename Table>
void bind_net_set_up(const Table* table, const std::shared_ptr<BoundState>& state, NetTable* out) {
  out->init = [=](nccl::Logger logger, [[maybe_unused]] uint64_t comm_id) -> Code {
    if constexpr (kVersion >= 11) {
      return table->init(&state->context, comm_id, &state->config, logger, nullptr);
    } else if constexpr (kVersion == 10) {
      return table->init(logger, nullptr);
    } else {
      return table->init(logger);
    }
  };
  out->properties = [=](int device, NetProperties* properties) -> Code {
    Properties in{};
    const Code code = table->get_properties(device, &in);
    if (code != nccl::kSuccess) return code;
    *properties = {in.name != nullptr ? in.name : "", in.pci_path != nullptr ? in.pci_path : "",
                   in.speed_mbps, in.latency_us, in.max_receives};
    if constexpr (kVersion >= 7) properties->on_host = in.net_device_type == nccl::kNetDeviceHost;
    if constexpr (kVersion >= 9) properties->max_p2p_bytes = in.max_p2p_bytes;
    return code;
  };
  out->connect = [=](int device, void* handle, void** comm) -> Code {
    [[maybe_unused]] nccl::NetDeviceHandle* offload = nullptr;
    if constexpr (kVersion >= 11) {
      return table->connect(state->context, device, handle, comm, &offload);
    } else if constexpr (kVersion == 10) {
      return table->connect(device, &state->config, handle, comm, &offload);
    } else if constexpr (kVersion >= 7) {
      return table->connect(device, handle, comm, &offload);
    } else {
      return table->connect(device, handle, comm);
    }
  };
  out->accept = [=](void* listen_comm, void** comm) -> Code {
    [[maybe_unused]] nccl::NetDeviceHandle* offload = nullptr;
    if constexpr (kVersion >= 7) {
      return table->accept(listen_comm, comm, &offload);
    } else {
      return table->accept(listen_comm, comm);
    }
  };
}

template <typename Table, typename Properties, int kVersion>
bool bind_net_version(void* library, NetTable* out) {
  const std::string symbol = "ncclNetPlugin_v" + std::to_string(kVersion);
  const auto* table = static_cast<const Table*>(dlsym(library, symbol.c_str()));
  if (table == nullptr) return false;
  const auto state = std::make_shared<BoundState>();
  bind_common<kVersion>(table, state, out);
  bind_net_set_up<kVersion, Properties>(table, state, out);
  out->close_send = table->close_send;
  out->close_recv = table->close_recv;
  out->isend = [table, profile = &state->profile](void* comm, void* data, size_t bytes, int tag,
                                                  void* mhandle, void** request) -> Code {
    if constexpr (kVersion >= 10) {
      return table->isend(comm, data, bytes, tag, mhandle, profile, request);
    } else if constexpr (kVersion == 9) {
      return table->isend(comm, data, bytes, tag, mhandle, request);
    } else {
      return table->isend(comm, data, static_cast<int>(bytes), tag, mhandle, request);
    }
  };
  out->irecv = [table, &own = state->profile](void* comm, void* data, size_t bytes, int tag,
                                              void* mhandle, void** request) -> Code {
    if constexpr (kVersion >= 10) {
      void* profile = &own;
      return table->irecv(comm, 1, &data, &bytes, &tag, &mhandle, &profile, request);
    } else if constexpr (kVersion == 9) {
      return table->irecv(comm, 1, &data, &bytes, &tag, &mhandle, request);
    } else {
      int size = static_cast<int>(bytes);
      return table->irecv(comm, 1, &data, &size, &tag, &mhandle, request);
    }
  };
  out->receive_consumed = [=](void* comm, void* request) {
    if constexpr (kVersion >= 7) {
      if (table->irecv_consumed != nullptr) (void)table->irecv_consumed(comm, 1, request);
    }
  };
  return true;
}

template <typename Table, typename Properties, int kVersion>
bool bind_coll_version(void* library, CollTable* out) {
  const std::string symbol = "ncclCollNetPlugin_v" + std::to_string(kVersion);
  const auto* table = static_cast<const Table*>(dlsym(library, symbol.c_str()));
  if (table == nullptr) return false;
  const auto state = std::make_shared<BoundState>();
  bind_common<kVersion>(table, state, out);
  out->connect = table->connect;
  out->close_coll = table->close_coll;
  out->init = [=](nccl::Logger logger, [[maybe_unused]] uint64_t comm_id) -> Code {
    if constexpr (kVersion >= 11) {
      return table->init(&state->context, comm_id, logger);
    } else {
      return table->init(logger);
    }
  };
  out->properties = [=](int device, CollProperties* properties) -> Code {
    Properties in{};
    const Code code = table->get_properties(device, &in);
    if (code != nccl::kSuccess) return code;
    *properties = {in.pointer_support, kMaxCollBytes};
    if constexpr (kVersion >= 9) properties->max_collective_bytes = in.max_collective_bytes;
    return code;
  };
  // Types and operations are in NCCL's order.
  const auto op_of = [](RedOp op) {
    return op == RedOp::kAvg ? nccl::kSum : static_cast<nccl::ReduceOp>(op);
  };
  out->reduce_support = [=](DataType type, RedOp op, int* supported) -> Code {
    return table->reduce_support(static_cast<nccl::DataType>(type), op_of(op), supported);
  };
  out->iallreduce = [=](void* comm, const CollCall& call, void** request) -> Code {
    using Count = std::conditional_t<(kVersion >= 9), size_t, int>;
    return table->iallreduce(comm, call.send, call.receive, static_cast<Count>(call.count),
                             static_cast<nccl::DataType>(call.type), op_of(call.op),
                             call.send_handle, call.receive_handle, request);
  };
  return true;
}

using namespace nccl;

constexpr bool (*kNetVersions[])(void*, NetTable*) = {
    bind_net_version<NetV6, PropertiesV6, 6>,    bind_net_version<NetV7, PropertiesV7, 7>,
    bind_net_version<NetV8, PropertiesV8, 8>,    bind_net_version<NetV9, PropertiesV9, 9>,
    bind_net_version<NetV10, PropertiesV10, 10>, bind_net_version<NetV11, PropertiesV11, 11>,
    bind_net_version<NetV12, PropertiesV12, 12>};

constexpr bool (*kCollVersions[])(void*, CollTable*) = {
    bind_coll_version<CollNetV6, PropertiesV6, 6>,
    bind_coll_version<CollNetV7, PropertiesV7, 7>,
    bind_coll_version<CollNetV8, PropertiesV8, 8>,
    bind_coll_version<CollNetV9, PropertiesV9, 9>,
    bind_coll_version<CollNetV10, PropertiesV9, 10>,
    bind_coll_version<CollNetV11, PropertiesV11, 11>,
    bind_coll_version<CollNetV12, PropertiesV12, 12>};

}  // namespace

bool bind_net(void* library, int version, NetTable* table) {
  return kNetVersions[version - kFirstVersion](library, table);
}

bool bind_coll(void* library, int version, CollTable* table) {
  return kCollVersions[version - kFirstVersion](library, table);
}

}  // namespace slime::perf
