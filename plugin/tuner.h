// The tuner as one version sees it. NCCL asks before each collective what it would cost by each
// algorithm; we speak up only for all_reduce, only about CollNet, and only where NCCL says itself
// that CollNet can do it. NCCL has ruled out by then what it cannot: types and reductions that
// reduceSupport refused, more GPUs per node than CollNet takes, what NCCL_ALGO or NCCL_PROTO
// exclude (src/enqueue.cc, updateCollCostTable).
//
// Nothing here fails: an error would fail the user's collective.
#pragma once

#include <cstddef>

#include "plugin/nccl_tuner_tables.h"

namespace slime::plugin::tuner {

// An operation as NCCL describes it. It does not tell the type and the reduction.
struct Question {
  nccl::Function function = nccl::kFuncAllReduce;
  size_t bytes = 0;
};

// float[algorithms][protocols]
struct CostTable {
  float* costs = nullptr;
  int algorithms = 0;
  int protocols = 0;
};

void init(size_t ranks, size_t nodes, nccl::Logger logger, void** context);
// v3 and later.
void adjust(const void* context, const Question& question, const CostTable& table);
// v2, that is NCCL 2.21: there is no table. Leaves both alone unless CollNet is to be taken; it
// cannot be avoided there.
void choose(const void* context, const Question& question, bool supported, int* algorithm,
            int* protocol);
void destroy(void* context);

}  // namespace slime::plugin::tuner
