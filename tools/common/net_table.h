// The calls of a network plugin, those of the net and those of CollNet: see PluginTable.
#pragma once

#include "plugin/abi/collnet_tables.h"
#include "plugin/abi/net_tables.h"
#include "tools/common/plugin_table.h"

namespace slime::tools {

class NetTable : public PluginTable<nccl::NetV6, nccl::NetV7, nccl::NetV8, nccl::NetV9,
                                    nccl::NetV10, nccl::NetV11, nccl::NetV12> {
 public:
  NetTable() : PluginTable("ncclNetPlugin_v") {}

  // NCCL passes *request = 1 to an irecv whose completion it will not look at.
  bool optional_completion() const { return version() >= 9; }

  // `config`: v10 only, later ones have it from init.
  Code connect(int device, const nccl::NetCommConfig* config, void* handle, void** comm,
               nccl::NetDeviceHandle** offload) const {
    return call(SLIME_ENTRY(connect), context_, device, config, handle, comm, offload);
  }
  Code accept(void* listen_comm, void** comm, nccl::NetDeviceHandle** offload) const {
    return call(SLIME_ENTRY(accept), listen_comm, comm, offload);
  }
  Code close_send(void* comm) const { return call(SLIME_ENTRY(close_send), comm); }
  Code close_recv(void* comm) const { return call(SLIME_ENTRY(close_recv), comm); }
  Code isend(void* comm, void* data, size_t bytes, int tag, void* mhandle, void* profile,
             void** request) const {
    return call(SLIME_ENTRY(isend), comm, data, bytes, tag, mhandle, profile, request);
  }
  // Not by call_with(): `profiles` has the type of `request`, which is next where it is missing.
  Code irecv(void* comm, int n, void** data, size_t* sizes, int* tags, void** mhandles,
             void** profiles, void** request) const {
    return with([&](const auto* table) {
      int narrow[kMostReceives];
      int* const ints = sizes != nullptr ? narrow : nullptr;
      if constexpr (requires { table->irecv(comm, n, data, ints, tags, mhandles, request); }) {
        for (int i = 0; ints != nullptr && i < std::min(n, kMostReceives); ++i) {
          narrow[i] = static_cast<int>(sizes[i]);
        }
        return table->irecv(comm, n, data, ints, tags, mhandles, request);
      } else if constexpr (requires {
                             table->irecv(comm, n, data, sizes, tags, mhandles, request);
                           }) {
        return table->irecv(comm, n, data, sizes, tags, mhandles, request);
      } else {
        return table->irecv(comm, n, data, sizes, tags, mhandles, profiles, request);
      }
    });
  }
  void irecv_consumed(void* comm, int n, void* request) const {  // from v7; may be NULL
    with([&](const auto* table) {
      if constexpr (requires { table->irecv_consumed; }) {
        if (table->irecv_consumed != nullptr) (void)table->irecv_consumed(comm, n, request);
      }
    });
  }

 private:
  static constexpr int kMostReceives = 64;  // in one request
};

class CollTable
    : public PluginTable<nccl::CollNetV6, nccl::CollNetV7, nccl::CollNetV8, nccl::CollNetV9,
                         nccl::CollNetV10, nccl::CollNetV11, nccl::CollNetV12> {
 public:
  CollTable() : PluginTable("ncclCollNetPlugin_v") {}

  // Waits for all ranks. When it fails, the listenComm is the plugin's to free.
  Code connect(void** handles, int ranks, int rank, void* listen_comm, void** comm) const {
    return call(SLIME_ENTRY(connect), handles, ranks, rank, listen_comm, comm);
  }
  Code close_coll(void* comm) const { return call(SLIME_ENTRY(close_coll), comm); }
  Code reduce_support(nccl::DataType type, nccl::ReduceOp op, int* supported) const {
    return call(SLIME_ENTRY(reduce_support), type, op, supported);
  }
  Code iallreduce(void* comm, void* send, void* receive, size_t count, nccl::DataType type,
                  nccl::ReduceOp op, void* send_handle, void* receive_handle,
                  void** request) const {
    return call(SLIME_ENTRY(iallreduce), comm, send, receive, count, type, op, send_handle,
                receive_handle, request);
  }
};

}  // namespace slime::tools
