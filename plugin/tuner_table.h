// Adapters from NCCL's signatures to plugin/tuner.h.
#pragma once

#include "plugin/boundary.h"
#include "plugin/net_table.h"
#include "plugin/tuner.h"

namespace slime::plugin::table {

// What goes wrong is told, and NCCL goes on with its own model: a tuner's error would fail the
// user's collective.
template <typename Body>
ResultCode advice(const char* function, Body&& body) noexcept {
  (void)boundary(function, [&]() -> Result<void> {
    body();
    return {};
  });
  return nccl::kSuccess;
}

inline ResultCode tuner_init_v2(size_t ranks, size_t nodes, nccl::Logger logger,
                                void** context) noexcept {
  return advice("tuner init", [&] { tuner::init(ranks, nodes, logger, context); });
}

inline ResultCode tuner_init_v5(void** context, uint64_t /*comm_id*/, size_t ranks, size_t nodes,
                                nccl::Logger logger, nccl::NvlDomainInfo* /*domains*/,
                                nccl::TunerConstants* /*constants*/) noexcept {
  return advice("tuner init", [&] { tuner::init(ranks, nodes, logger, context); });
}

inline ResultCode tuner_info_v2(void* context, nccl::Function function, size_t bytes,
                                int coll_net_support, int /*nvls_support*/, int /*pipelined_ops*/,
                                int* algorithm, int* protocol, int* /*channels*/) noexcept {
  return advice("getCollInfo", [&] {
    tuner::choose(context, {.function = function, .bytes = bytes}, coll_net_support == 1, algorithm,
                  protocol);
  });
}

inline ResultCode tuner_info_v4(void* context, nccl::Function function, size_t bytes,
                                int /*pipelined_ops*/, float** costs, int algorithms, int protocols,
                                int /*registered*/, int* /*channels*/) noexcept {
  return advice("getCollInfo", [&] {
    tuner::adjust(context, {.function = function, .bytes = bytes},
                  {.costs = reinterpret_cast<float*>(costs),
                   .algorithms = algorithms,
                   .protocols = protocols});
  });
}

inline ResultCode tuner_info_v3(void* context, nccl::Function function, size_t bytes,
                                int pipelined_ops, float** costs, int algorithms, int protocols,
                                int* channels) noexcept {
  return tuner_info_v4(context, function, bytes, pipelined_ops, costs, algorithms, protocols, 0,
                       channels);
}

inline ResultCode tuner_destroy(void* context) noexcept {
  return advice("tuner destroy", [&] { tuner::destroy(context); });
}

}  // namespace slime::plugin::table
