// The net API as one version sees it: what the tables of all versions call after adapting types.
// Arguments come unchecked from NCCL; everything that can be checked is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "engine/comm.h"
#include "plugin/abi/types.h"

namespace slime::plugin {

// NCCL gives plugins before v9 this limit (MAX_NET_SIZE), and test() reports sizes as int in every
// version, so a larger message could not be reported.
inline constexpr size_t kMaxMessageBytes = size_t{1} << 30;
inline constexpr int kMaxComms = 65536;

// Union of all versions' properties; strings live as long as the process.
struct NetProperties {
  const char* name = nullptr;
  const char* pci_path = nullptr;  // nullptr: virtual
  uint64_t guid = 0;
  int pointer_support = 0;
  int speed_mbps = 0;
  int port = 0;
  float latency_us = 0;
  std::span<const int> members;
};

// net.cc
Result<void> init(nccl::Logger logger);  // tables before v11
Result<void> init_context(void** context, uint64_t comm_id, const nccl::NetCommConfig* config,
                          nccl::Logger logger);
Result<void> finalize(void* context);
Result<void> devices(int* count);
Result<NetProperties> properties(int device);
Result<void> make_virtual_device(int* device, const int* members, int count);
// What a communicator's configuration says (nullptr: it has none); a value that is no TOS byte is
// warned of, once, and counts as undefined.
int checked_traffic_class(const nccl::NetCommConfig* config);
int traffic_class_of(const void* context);  // of the communicator that init made `context` for

// net_connect.cc
// `traffic_class`: as checked_traffic_class() returned it. The two ends of a link each mark what
// they send.
Result<void> listen(int device, void* handle, void** listen_comm, int traffic_class);
Result<void> connect(int device, void* handle, void** send_comm, int traffic_class);
Result<void> accept(void* listen_comm, void** recv_comm);
Result<void> close_send(void* send_comm);
Result<void> close_recv(void* recv_comm);
Result<void> close_listen(void* listen_comm);

// net_memory.cc. A negative int arrives here as a size beyond any limit.
Result<void> register_memory(void* comm, void* data, size_t bytes, int type, void** mhandle);
struct DmaBuf {
  int fd = -1;
  uint64_t offset = 0;  // where the memory begins in it
};
Result<void> register_dma_buf(void* comm, void* data, size_t bytes, int type, DmaBuf buffer,
                              void** mhandle);
Result<void> deregister_memory(void* comm, void* mhandle);

// net_data.cc
struct ReceiveArguments {
  int n = 0;
  void** data = nullptr;
  const int* tags = nullptr;
  void** mhandles = nullptr;
};
Result<void> isend(void* send_comm, const void* data, size_t bytes, int tag, void* mhandle,
                   void** request);
// `may_complete_early`: NCCL does not need to know how much arrived (kOptionalReceiveCompletion).
Result<void> irecv(void* recv_comm, const ReceiveArguments& arguments, const int* sizes,
                   bool may_complete_early, void** request);
Result<void> irecv(void* recv_comm, const ReceiveArguments& arguments, const size_t* sizes,
                   bool may_complete_early, void** request);
struct FlushArguments {
  int n = 0;  // receives in the group
  void** data = nullptr;
  const int* sizes = nullptr;  // received
  void** mhandles = nullptr;
};
Result<void> iflush(void* recv_comm, const FlushArguments& arguments, void** request);
Result<void> test(void* request, int* done, int* sizes);

}  // namespace slime::plugin
