// The CollNet API as one version sees it: what the tables of all versions call after adapting
// types. init, finalize, getProperties and makeVDevice are those of plugin/net.h.
#pragma once

#include "plugin/abi/collnet_tables.h"
#include "plugin/net.h"

namespace slime::plugin::coll {

// The devices of the net, in their order; none unless NCCL_SLIME_SWITCH names a switch.
Result<void> devices(int* count);
Result<void> listen(int device, void* handle, void** listen_comm, int traffic_class);
// Waits. Whoever fails, all members fail; the listenComm is gone then.
Result<void> connect(void* handles[], int ranks, int rank, void* listen_comm, void** coll_comm);
Result<void> reduce_support(nccl::DataType type, nccl::ReduceOp op, int* supported);
Result<void> register_memory(void* comm, void* data, size_t bytes, int type, void** mhandle);
Result<void> register_dma_buf(void* comm, size_t bytes, int fd);
Result<void> deregister_memory(void* comm, void* mhandle);

struct AllreduceArguments {
  const void* send = nullptr;
  void* receive = nullptr;
  size_t count = 0;
  nccl::DataType type = nccl::kFloat32;
  nccl::ReduceOp op = nccl::kSum;
  const void* send_mhandle = nullptr;
  const void* receive_mhandle = nullptr;
};
// *request stays NULL where too many are outstanding: call again.
Result<void> iallreduce(void* comm, const AllreduceArguments& arguments, void** request);
Result<void> iflush(void* comm, void** request);
Result<void> test(void* request, int* done, int* size);
Result<void> close_coll(void* comm);
Result<void> close_listen(void* listen_comm);

}  // namespace slime::plugin::coll
