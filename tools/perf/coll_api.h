// The CollNet side of a plugin as slime-perf sees it, whatever the version of the table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "plugin/abi/types.h"
#include "tools/perf/words.h"

namespace slime::perf {

struct CollProperties {
  std::string name;
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

class CollApi {
 public:
  virtual ~CollApi() = default;
  virtual int version() const = 0;
  virtual const char* name() const = 0;

  virtual nccl::ResultCode init(nccl::Logger logger, uint64_t comm_id) = 0;
  virtual nccl::ResultCode finalize() = 0;  // nothing before v11
  virtual nccl::ResultCode devices(int* count) = 0;
  virtual nccl::ResultCode properties(int device, CollProperties* properties) = 0;

  virtual nccl::ResultCode listen(int device, void* handle, void** listen_comm) = 0;
  // Waits for all ranks. When it fails, the listenComm is the plugin's to free.
  virtual nccl::ResultCode connect(void** handles, int ranks, int rank, void* listen_comm,
                                   void** coll_comm) = 0;
  virtual nccl::ResultCode reduce_support(DataType type, RedOp op, int* supported) = 0;
  virtual nccl::ResultCode reg_mr(void* comm, void* data, size_t bytes, void** mhandle) = 0;
  virtual nccl::ResultCode dereg_mr(void* comm, void* mhandle) = 0;
  virtual nccl::ResultCode close_coll(void* comm) = 0;
  virtual nccl::ResultCode close_listen(void* comm) = 0;

  virtual nccl::ResultCode iallreduce(void* comm, const CollCall& call, void** request) = 0;
  virtual nccl::ResultCode test(void* request, int* done, int* size) = 0;
};

// The table that NCCL would choose from an open library, or null.
std::unique_ptr<CollApi> find_coll_table(void* library, int max_api);

}  // namespace slime::perf
