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
// `offset`: where the memory begins in the DMA-BUF `fd`.
Result<void> register_dma_buf(void* comm, void* data, size_t bytes, int type, uint64_t offset,
                              int fd, void** mhandle);
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

// What the functions of net and CollNet share. All errors are cold.
inline Error null_argument(const char* name) {
  return make_error(Status::kInvalid, 0, "%s is NULL", name);
}

inline Error not_a(const char* what, const void* object) {
  return make_error(
      Status::kInvalid, 0,
      "%p is not a %s of this process that is open: it was closed already, belongs to "
      "the process that forked this one, or is of another kind",
      object, what);
}

// The device NCCL means, or an error that says which there are.
Result<Device*> find_device(int index);

// regMr and deregMr of any kind of comm on this device (net_memory.cc). The kind of the range
// follows from `type`.
Result<void> register_on(Device& device, MemoryRange range, int type, void** mhandle);
Result<void> deregister_on(Device& device, void* mhandle);

// A connection's failure, without its sentence if it was logged before.
Error failure_of(const Comm& comm);

}  // namespace slime::plugin
