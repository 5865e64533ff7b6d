// ncclCollNet_v6_t ... ncclCollNet_v12_t: the tables of functions that NCCL looks up by symbol.
// Order and types are NCCL's (src/include/plugin/net/net_v*.h); the names are ours. Where versions
// differ in a type only, they share a template.
#pragma once

#include "plugin/nccl_properties.h"

namespace slime::nccl {

// ncclDataType_t
enum DataType : int {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kUint32 = 3,
  kInt64 = 4,
  kUint64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
};

// ncclRedOp_t. Averages and scaled sums reach a network as sums (NCCL src/enqueue.cc,
// hostToDevRedOp).
enum ReduceOp : int { kSum = 0, kProd = 1, kMax = 2, kMin = 3 };

// iallgather and ireducescatter, which we leave out: NCCL then does not use CollNet for them
// (src/graph/tuning.cc).
using NoFunction = void (*)();

// v6, v7
template <typename Properties>
struct CollNetV6 {
  const char* name;
  ResultCode (*init)(Logger logger);
  ResultCode (*devices)(int* count);
  ResultCode (*get_properties)(int device, Properties* properties);
  ResultCode (*listen)(int device, void* handle, void** listen_comm);
  ResultCode (*connect)(void* handles[], int ranks, int rank, void* listen_comm, void** coll_comm);
  ResultCode (*reduce_support)(DataType type, ReduceOp op, int* supported);
  ResultCode (*reg_mr)(void* coll_comm, void* data, int bytes, int type, void** mhandle);
  ResultCode (*reg_mr_dma_buf)(void* coll_comm, void* data, size_t bytes, int type, uint64_t offset,
                               int fd, void** mhandle);
  ResultCode (*dereg_mr)(void* coll_comm, void* mhandle);
  ResultCode (*iallreduce)(void* coll_comm, void* send_data, void* recv_data, int count,
                           DataType type, ReduceOp op, void* send_mhandle, void* recv_mhandle,
                           void** request);
  ResultCode (*iflush)(void* coll_comm, void* data, int bytes, void* mhandle, void** request);
  ResultCode (*test)(void* request, int* done, int* size);
  ResultCode (*close_coll)(void* coll_comm);
  ResultCode (*close_listen)(void* listen_comm);
};

// What v8 and later share between getProperties and the end.
#define SLIME_COLLNET_V8_CALLS(Count)                                                          \
  ResultCode (*connect)(void* handles[], int ranks, int rank, void* listen_comm,               \
                        void** coll_comm);                                                     \
  ResultCode (*reduce_support)(DataType type, ReduceOp op, int* supported);                    \
  ResultCode (*reg_mr)(void* coll_comm, void* data, size_t bytes, int type, void** mhandle);   \
  ResultCode (*reg_mr_dma_buf)(void* coll_comm, void* data, size_t bytes, int type,            \
                               uint64_t offset, int fd, void** mhandle);                       \
  ResultCode (*dereg_mr)(void* coll_comm, void* mhandle);                                      \
  ResultCode (*iallreduce)(void* coll_comm, void* send_data, void* recv_data, Count count,     \
                           DataType type, ReduceOp op, void* send_mhandle, void* recv_mhandle, \
                           void** request);                                                    \
  NoFunction iallgather;                                                                       \
  NoFunction ireducescatter;                                                                   \
  ResultCode (*iflush)(void* coll_comm, void* data, int bytes, void* mhandle, void** request); \
  ResultCode (*test)(void* request, int* done, int* size);                                     \
  ResultCode (*close_coll)(void* coll_comm);                                                   \
  ResultCode (*close_listen)(void* listen_comm);

struct CollNetV8 {
  const char* name;
  ResultCode (*init)(Logger logger);
  ResultCode (*devices)(int* count);
  ResultCode (*get_properties)(int device, PropertiesV8* properties);
  ResultCode (*listen)(int device, void* handle, void** listen_comm);
  SLIME_COLLNET_V8_CALLS(int)
};

// v9, v10
struct CollNetV9 {
  const char* name;
  ResultCode (*init)(Logger logger);
  ResultCode (*devices)(int* count);
  ResultCode (*get_properties)(int device, PropertiesV9* properties);
  ResultCode (*listen)(int device, void* handle, void** listen_comm);
  SLIME_COLLNET_V8_CALLS(size_t)
  ResultCode (*make_virtual_device)(int* device, VirtualDeviceV9* members);
};

// v11, v12
template <typename Properties, typename VirtualDevice>
struct CollNetV11 {
  const char* name;
  ResultCode (*init)(void** context, uint64_t comm_id, Logger logger);
  ResultCode (*devices)(int* count);
  ResultCode (*get_properties)(int device, Properties* properties);
  ResultCode (*listen)(void* context, int device, void* handle, void** listen_comm);
  SLIME_COLLNET_V8_CALLS(size_t)
  ResultCode (*make_virtual_device)(int* device, VirtualDevice* members);
  ResultCode (*finalize)(void* context);
};

}  // namespace slime::nccl
