// ncclTuner_v2_t ... ncclTuner_v5_t: the tables of functions that NCCL looks up in the net plugin
// where there is no tuner library. Order and types are NCCL's (src/include/nccl_tuner.h of v2.21.5,
// src/include/plugin/tuner/tuner_v*.h since v2.26); the names are ours.
#pragma once

#include "plugin/nccl_abi.h"

namespace slime::nccl {

// ncclFunc_t: the one collective that is of interest here.
enum Function : int { kFuncAllReduce = 4 };

// NCCL_ALGO_*: rows of the cost table. Later versions append rows only.
inline constexpr int kAlgoCollNetDirect = 2;
inline constexpr int kAlgoCollNetChain = 3;

// NCCL_PROTO_*: columns of the cost table.
inline constexpr int kProtoSimple = 2;

// NCCL_ALGO_PROTO_IGNORE: not to be had for this operation.
inline constexpr float kCostIgnore = -1.0F;

struct NvlDomainInfo;   // ncclNvlDomainInfo_v5_t, ncclTunerConstants_v5_t: what v5 shows of NCCL's
struct TunerConstants;  // model, which stays as it is

// v2
struct TunerV2 {
  const char* name;
  ResultCode (*init)(size_t ranks, size_t nodes, Logger logger, void** context);
  ResultCode (*get_coll_info)(void* context, Function function, size_t bytes, int coll_net_support,
                              int nvls_support, int pipelined_ops, int* algorithm, int* protocol,
                              int* channels);
  ResultCode (*destroy)(void* context);
};

// The cost table is declared as float** and is float[algorithms][protocols], in microseconds
// (NCCL src/enqueue.cc, updateCollCostTable).
struct TunerV3 {
  const char* name;
  ResultCode (*init)(size_t ranks, size_t nodes, Logger logger, void** context);
  ResultCode (*get_coll_info)(void* context, Function function, size_t bytes, int pipelined_ops,
                              float** costs, int algorithms, int protocols, int* channels);
  ResultCode (*destroy)(void* context);
};

struct TunerV4 {
  const char* name;
  ResultCode (*init)(size_t ranks, size_t nodes, Logger logger, void** context);
  ResultCode (*get_coll_info)(void* context, Function function, size_t bytes, int pipelined_ops,
                              float** costs, int algorithms, int protocols, int registered,
                              int* channels);
  ResultCode (*destroy)(void* context);
};

struct TunerV5 {
  const char* name;
  ResultCode (*init)(void** context, uint64_t comm_id, size_t ranks, size_t nodes, Logger logger,
                     NvlDomainInfo* domains, TunerConstants* constants);
  ResultCode (*get_coll_info)(void* context, Function function, size_t bytes, int pipelined_ops,
                              float** costs, int algorithms, int protocols, int registered,
                              int* channels);
  ResultCode (*finalize)(void* context);
};

}  // namespace slime::nccl
