// ncclTunerPlugin_v2 ... v5. NCCL asks before each collective what it would cost by each algorithm.
// The tuner answers for all_reduce only, about CollNet only, and only if NCCL says that CollNet can
// do the operation. NCCL has excluded before types and reductions that reduceSupport refused, more
// GPUs per node than CollNet takes, and everything that NCCL_ALGO or NCCL_PROTO exclude
// (src/enqueue.cc, updateCollCostTable).
//
// A context is the TunerAdvice for one shape of communicator, or NULL: there is no advice. It does
// not change, so any thread may use it.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "plugin/abi/tuner_tables.h"
#include "plugin/api_call.h"
#include "plugin/logger.h"
#include "plugin/nccl_proto.h"
#include "plugin/state.h"
#include "plugin/tuner_file.h"

namespace slime::plugin::tuner {
namespace {

using nccl::ResultCode;

constexpr float kFree = 0;
// NCCL takes the smallest cost below 3.6e9 us (v2.22.3 src/enqueue.cc, topoGetAlgoInfo). An
// algorithm with this cost comes last, and NCCL still takes it if there is no other.
constexpr float kLastResort = 3.0e9F;

std::string ranges(const TunerAdvice& advice, Verdict verdict) {
  constexpr size_t kMostShown = 8;
  std::string text;
  size_t count = 0;
  for (const TunerRule& rule : advice.rules) {
    if (rule.verdict != verdict || count++ >= kMostShown) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(rule.from_bytes) + " to " +
            std::to_string(rule.to_bytes);
  }
  if (count > kMostShown) text += ", and " + std::to_string(count - kMostShown) + " more ranges";
  return text.empty() ? "no" : text;
}

// Returns the reason why there is no advice; "": no reason worth a line in the log.
std::string find_advice(size_t ranks, size_t nodes, TunerAdvice* advice) {
  const auto policy = State::get().tuner_policy();
  if (policy == nullptr) return {};
  if (!policy->file) return policy->why_not;
  if (const char* const chosen = set_variable("NCCL_ALGO")) {
    return "NCCL_ALGO=" + std::string(chosen) + " is set";
  }
  *advice = policy->file->advice_for(ranks, nodes);
  return advice->empty() ? "the tuner file has no line for this shape" : "";
}

Verdict verdict_for(const void* context, nccl::Function function, size_t bytes) {
  const auto* const advice = static_cast<const TunerAdvice*>(context);
  if (advice == nullptr || function != nccl::kFuncAllReduce) return Verdict::kUnknown;
  return advice->on(bytes);
}

void open(size_t ranks, size_t nodes, nccl::Logger logger, void** context) {
  if (context == nullptr) return;
  *context = nullptr;
  if (logger != nullptr) set_logger(logger);
  auto advice = std::make_unique<TunerAdvice>();
  const std::string reason = find_advice(ranks, nodes, advice.get());
  if (!reason.empty()) {
    SLIME_INFO("tuner: %zu ranks on %zu nodes: NCCL chooses by its own model: %s", ranks, nodes,
               reason.c_str());
  }
  if (advice->empty()) return;
  SLIME_INFO(
      "tuner: %zu ranks on %zu nodes: all_reduce by CollNet, where supported, for %s bytes; not "
      "for %s bytes; otherwise %s",
      ranks, nodes, ranges(*advice, Verdict::kPrefer).c_str(),
      ranges(*advice, Verdict::kAvoid).c_str(),
      advice->otherwise == Verdict::kAvoid ? "not" : "as NCCL chooses");
  *context = advice.release();
}

// float[algorithms][protocols]
struct CostTable {
  float* costs = nullptr;
  int algorithms = 0;
  int protocols = 0;
};

// v3 and later: gives CollNet a low or a high cost.
void adjust(Verdict verdict, const CostTable& table) {
  if (verdict == Verdict::kUnknown || table.costs == nullptr) return;
  if (table.algorithms <= nccl::kAlgoCollNetChain || table.protocols <= nccl::kProtoSimple) return;
  float* cheapest = nullptr;
  for (const int algorithm : {nccl::kAlgoCollNetDirect, nccl::kAlgoCollNetChain}) {
    float* const cost = table.costs + algorithm * table.protocols + nccl::kProtoSimple;
    if (!(*cost >= 0)) continue;  // kCostIgnore: NCCL has ruled it out
    if (verdict == Verdict::kAvoid) *cost = std::max(*cost, kLastResort);
    if (cheapest == nullptr || *cost < *cheapest) cheapest = cost;
  }
  if (verdict == Verdict::kPrefer && cheapest != nullptr) *cheapest = kFree;
}

// v2 (NCCL 2.21) has no table of costs. This sets both only if the advice is to prefer CollNet; v2
// has no way to avoid it.
void choose(Verdict verdict, bool supported, int* algorithm, int* protocol) {
  if (!supported || algorithm == nullptr || protocol == nullptr) return;
  if (verdict != Verdict::kPrefer) return;
  // NCCL 2.21 takes this answer without using its own model, so the plugin must respect NCCL_PROTO
  // (v2.21.5 src/enqueue.cc, getTunerInfo).
  const char* const allowed = set_variable("NCCL_PROTO");
  if (allowed != nullptr && !allows_protocol(allowed, "simple")) return;
  *algorithm = nccl::kAlgoCollNetChain;
  *protocol = nccl::kProtoSimple;
}

// Errors are logged, and NCCL goes on with its own model: a returned error would fail the user's
// collective.
template <typename Body>
ResultCode advice_call(const char* function, Body&& body) noexcept {
  (void)api_call(function, [&]() -> Result<void> {
    body();
    return {};
  });
  return nccl::kSuccess;
}

ResultCode init(size_t ranks, size_t nodes, nccl::Logger logger, void** context) noexcept {
  return advice_call("tuner init", [&] { open(ranks, nodes, logger, context); });
}

// v5
ResultCode init(void** context, uint64_t /*comm_id*/, size_t ranks, size_t nodes,
                nccl::Logger logger, nccl::NvlDomainInfo* /*domains*/,
                nccl::TunerConstants* /*constants*/) noexcept {
  return init(ranks, nodes, logger, context);
}

// v2
ResultCode get_coll_info(void* context, nccl::Function function, size_t bytes, int coll_net_support,
                         int /*nvls_support*/, int /*pipelined_ops*/, int* algorithm, int* protocol,
                         int* /*channels*/) noexcept {
  return advice_call("getCollInfo", [&] {
    choose(verdict_for(context, function, bytes), coll_net_support == 1, algorithm, protocol);
  });
}

// v4
ResultCode get_coll_info(void* context, nccl::Function function, size_t bytes,
                         int /*pipelined_ops*/, float** costs, int algorithms, int protocols,
                         int /*registered*/, int* /*channels*/) noexcept {
  return advice_call("getCollInfo", [&] {
    adjust(verdict_for(context, function, bytes),
           {reinterpret_cast<float*>(costs), algorithms, protocols});
  });
}

// v3
ResultCode get_coll_info(void* context, nccl::Function function, size_t bytes, int pipelined_ops,
                         float** costs, int algorithms, int protocols, int* channels) noexcept {
  return get_coll_info(context, function, bytes, pipelined_ops, costs, algorithms, protocols, 0,
                       channels);
}

ResultCode destroy(void* context) noexcept {
  return advice_call("tuner destroy", [&] { delete static_cast<TunerAdvice*>(context); });
}

template <typename Table>
constexpr Table make_table() {
  return {.name = kPluginName, .init = init, .get_coll_info = get_coll_info, .destroy = destroy};
}

}  // namespace

SLIME_EXPORT constinit const nccl::TunerV2 ncclTunerPlugin_v2 = make_table<nccl::TunerV2>();
SLIME_EXPORT constinit const nccl::TunerV3 ncclTunerPlugin_v3 = make_table<nccl::TunerV3>();
SLIME_EXPORT constinit const nccl::TunerV4 ncclTunerPlugin_v4 = make_table<nccl::TunerV4>();
SLIME_EXPORT constinit const nccl::TunerV5 ncclTunerPlugin_v5 = make_table<nccl::TunerV5>();

}  // namespace slime::plugin::tuner
