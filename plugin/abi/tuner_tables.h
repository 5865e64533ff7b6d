// ncclTuner_v2_t ... ncclTuner_v5_t: the tables of functions that NCCL looks up in the net plugin
// where there is no tuner library. Order and types are NCCL's (src/include/nccl_tuner.h of v2.21.5,
// src/include/plugin/tuner/tuner_v*.h since v2.26); the names are ours.
#pragma once

#include "plugin/abi/types.h"

namespace slime::nccl {

// ncclFunc_t: only all_reduce is needed here.
enum Function : int { kFuncAllReduce = 4 };

// NCCL_ALGO_*: rows of the cost table. Later versions append rows only.
inline constexpr int kAlgoCollNetDirect = 2;
inline constexpr int kAlgoCollNetChain = 3;

// NCCL_PROTO_*: columns of the cost table.
inline constexpr int kProtoSimple = 2;

// NCCL_ALGO_PROTO_IGNORE: NCCL cannot use this algorithm for the operation.
inline constexpr float kCostIgnore = -1.0F;

struct NvlDomainInfo;   // ncclNvlDomainInfo_v5_t, ncclTunerConstants_v5_t: what v5 shows of NCCL's
struct TunerConstants;  // model, which stays as it is

// NCCL 2.21
struct TunerSignaturesV2 {
  using Init = ResultCode(size_t ranks, size_t nodes, Logger logger, void** context);
  using GetCollInfo = ResultCode(void* context, Function function, size_t bytes,
                                 int coll_net_support, int nvls_support, int pipelined_ops,
                                 int* algorithm, int* protocol, int* channels);
};

// 2.22 and 2.23. The cost table is declared as float** and is float[algorithms][protocols], in
// microseconds (NCCL src/enqueue.cc, updateCollCostTable).
struct TunerSignaturesV3 : TunerSignaturesV2 {
  using GetCollInfo = ResultCode(void* context, Function function, size_t bytes, int pipelined_ops,
                                 float** costs, int algorithms, int protocols, int* channels);
};

// 2.24 to 2.27
struct TunerSignaturesV4 : TunerSignaturesV3 {
  using GetCollInfo = ResultCode(void* context, Function function, size_t bytes, int pipelined_ops,
                                 float** costs, int algorithms, int protocols, int registered,
                                 int* channels);
};

// 2.28 and later
struct TunerSignaturesV5 : TunerSignaturesV4 {
  using Init = ResultCode(void** context, uint64_t comm_id, size_t ranks, size_t nodes,
                          Logger logger, NvlDomainInfo* domains, TunerConstants* constants);
};

template <typename Signatures>
struct TunerTable {
  const char* name;
  typename Signatures::Init* init;
  typename Signatures::GetCollInfo* get_coll_info;
  ResultCode (*destroy)(void* context);  // v5 calls it finalize
};

using TunerV2 = TunerTable<TunerSignaturesV2>;
using TunerV3 = TunerTable<TunerSignaturesV3>;
using TunerV4 = TunerTable<TunerSignaturesV4>;
using TunerV5 = TunerTable<TunerSignaturesV5>;

}  // namespace slime::nccl
