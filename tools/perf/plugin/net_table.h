// The tables of a network plugin as slime-perf sees them: NCCL's calls, whatever their version.
//
// Versions differ only in types and in arguments that are always passed alike here. A table is
// bound once, when the library is loaded, and constant from then on; its calls may be made by
// whatever thread NCCL would make them on.
#pragma once

#include <functional>
#include <string>

#include "plugin/abi/types.h"
#include "tools/perf/words.h"

namespace slime::perf {

using Code = nccl::ResultCode;

struct NetProperties {
  std::string name, pci_path;
  int speed_mbps = 0;
  float latency_us = 0;
  int max_receives = 1;
  bool on_host = true;                     // no device offload
  size_t max_p2p_bytes = size_t{1} << 30;  // what NCCL assumes for tables before v9
};

// What both kinds of table have.
struct PluginTable {
  int version = 0;
  const char* name = "";
  std::function<Code(nccl::Logger, uint64_t comm_id)> init;
  std::function<Code()> finalize;  // nothing before v11
  std::function<Code(int* count)> devices;
  std::function<Code(int device, void* handle, void** listen_comm)> listen;
  std::function<Code(void* comm, void* data, size_t bytes, void** mhandle)> reg_mr;
  std::function<Code(void* comm, void* mhandle)> dereg_mr;
  std::function<Code(void* comm)> close_listen;
  std::function<Code(void* request, int* done, int* sizes)> test;
};

struct NetTable : PluginTable {
  // NCCL passes *request = 1 to an irecv whose completion it will not look at.
  bool optional_completion() const { return version >= 9; }

  std::function<Code(int device, NetProperties*)> properties;
  std::function<Code(int device, void* handle, void** send_comm)> connect;
  std::function<Code(void* listen_comm, void** recv_comm)> accept;
  std::function<Code(void*comm)> close_send, close_recv;
  using Transfer = Code(void* comm, void* data, size_t bytes, int tag, void* mhandle,
                        void** request);
  std::function<Transfer> isend, irecv;
  std::function<void(void* comm, void* request)> receive_consumed;  // from v7; may do nothing
};

struct CollProperties {
  int pointer_support = 0;
  size_t max_collective_bytes = 0;
};

struct CollCall {
  void* send = nullptr;
  void* receive = nullptr;
  size_t count = 0;
  DataType type = DataType::kFloat;
  RedOp op = RedOp::kSum;  // never kAvg: a network sees averages as sums
  void* send_handle = nullptr;
  void* receive_handle = nullptr;
};

struct CollTable : PluginTable {
  std::function<Code(int device, CollProperties*)> properties;
  // Waits for all ranks. When it fails, the listenComm is the plugin's to free.
  std::function<Code(void** handles, int ranks, int rank, void* listen_comm, void** coll_comm)>
      connect;
  std::function<Code(DataType, RedOp, int* supported)> reduce_support;
  std::function<Code(void* comm)> close_coll;
  std::function<Code(void* comm, const CollCall&, void** request)> iallreduce;
};

// What NCCL takes for CollNet tables before v9, which do not say it (MAX_COLLNET_SIZE).
inline constexpr size_t kMaxCollBytes = size_t{512} << 20;

inline constexpr int kFirstVersion = 6, kLastVersion = 12;

// False: the library has no table of that version.
bool bind_net(void* library, int version, NetTable* table);
bool bind_coll(void* library, int version, CollTable* table);

}  // namespace slime::perf
