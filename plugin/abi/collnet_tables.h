// ncclCollNet_v6_t ... ncclCollNet_v12_t: the tables of functions that NCCL looks up by symbol.
// Order and types are NCCL's (src/include/plugin/net/net_v*.h); the names are ours. As in
// abi/net_tables.h, CollNetSignaturesV<n> inherits the types that version n keeps and declares the
// others. Version 8 added functions in the middle, so the tables consist of parts.
#pragma once

#include "plugin/abi/properties.h"

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

// iallgather and ireducescatter. The plugin does not have them, so NCCL does not use CollNet for
// them (src/graph/tuning.cc).
using NoFunction = void (*)();

// NCCL 2.13 to 2.18
struct CollNetSignaturesV6 {
  using Properties = PropertiesV6;
  using Size = int;   // of registered memory
  using Count = int;  // of elements
  using Init = ResultCode(Logger logger);
  using Listen = ResultCode(int device, void* handle, void** listen_comm);
};

// 2.19
struct CollNetSignaturesV7 : CollNetSignaturesV6 {
  using Properties = PropertiesV7;
};

// 2.20 to 2.23
struct CollNetSignaturesV8 : CollNetSignaturesV7 {
  using Properties = PropertiesV8;
  using Size = size_t;
};

// 2.24 to 2.27, v9 and v10
struct CollNetSignaturesV9 : CollNetSignaturesV8 {
  using Properties = PropertiesV9;
  using Members = VirtualDeviceV9;
  using Count = size_t;
};

// 2.28 and 2.29
struct CollNetSignaturesV11 : CollNetSignaturesV9 {
  using Properties = PropertiesV11;
  using Init = ResultCode(void** context, uint64_t comm_id, Logger logger);
  using Listen = ResultCode(void* context, int device, void* handle, void** listen_comm);
};

// 2.30
struct CollNetSignaturesV12 : CollNetSignaturesV11 {
  using Properties = PropertiesV12;
  using Members = VirtualDeviceV12;
};

template <typename Signatures>
struct CollNetFirstPart {
  const char* name;
  typename Signatures::Init* init;
  ResultCode (*devices)(int* count);
  ResultCode (*get_properties)(int device, typename Signatures::Properties* properties);
  typename Signatures::Listen* listen;
  ResultCode (*connect)(void* handles[], int ranks, int rank, void* listen_comm, void** coll_comm);
  ResultCode (*reduce_support)(DataType type, ReduceOp op, int* supported);
  ResultCode (*reg_mr)(void* coll_comm, void* data, typename Signatures::Size bytes, int type,
                       void** mhandle);
  ResultCode (*reg_mr_dma_buf)(void* coll_comm, void* data, size_t bytes, int type, uint64_t offset,
                               int fd, void** mhandle);
  ResultCode (*dereg_mr)(void* coll_comm, void* mhandle);
  ResultCode (*iallreduce)(void* coll_comm, void* send_data, void* recv_data,
                           typename Signatures::Count count, DataType type, ReduceOp op,
                           void* send_mhandle, void* recv_mhandle, void** request);
};

struct CollNetGathers {  // from v8
  NoFunction iallgather;
  NoFunction ireducescatter;
};

struct CollNetLastPart {
  ResultCode (*iflush)(void* coll_comm, void* data, int bytes, void* mhandle, void** request);
  ResultCode (*test)(void* request, int* done, int* size);
  ResultCode (*close_coll)(void* coll_comm);
  ResultCode (*close_listen)(void* listen_comm);
};

template <typename Signatures>
struct CollNetTableV6 : CollNetFirstPart<Signatures>, CollNetLastPart {};

template <typename Signatures>
struct CollNetTableV8 : CollNetFirstPart<Signatures>, CollNetGathers, CollNetLastPart {};

template <typename Signatures>
struct CollNetTableV9 : CollNetTableV8<Signatures> {
  ResultCode (*make_virtual_device)(int* device, typename Signatures::Members* members);
};

template <typename Signatures>
struct CollNetTableV11 : CollNetTableV9<Signatures> {
  ResultCode (*finalize)(void* context);
};

using CollNetV6 = CollNetTableV6<CollNetSignaturesV6>;
using CollNetV7 = CollNetTableV6<CollNetSignaturesV7>;
using CollNetV8 = CollNetTableV8<CollNetSignaturesV8>;
using CollNetV9 = CollNetTableV9<CollNetSignaturesV9>;
using CollNetV10 = CollNetV9;
using CollNetV11 = CollNetTableV11<CollNetSignaturesV11>;
using CollNetV12 = CollNetTableV11<CollNetSignaturesV12>;

}  // namespace slime::nccl
