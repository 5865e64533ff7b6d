#include "plugin/tuner.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "plugin/announce.h"
#include "plugin/logger.h"
#include "plugin/state.h"
#include "plugin/tuner_file.h"

namespace slime::plugin::tuner {
namespace {

constexpr float kFree = 0;
// NCCL takes the smallest cost below 3.6e9 us (v2.22.3 src/enqueue.cc, topoGetAlgoInfo): what costs
// this much comes last, and is still taken where there is nothing else.
constexpr float kLastResort = 3.0e9F;

const char* set_variable(const char* name) {
  const char* const value = getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;  // NCCL takes empty lists for none
}

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

// Returns the reason why NCCL is left alone; "": nothing that the user would want to read.
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

Verdict verdict_for(const void* context, const Question& question) {
  const auto* const advice = static_cast<const TunerAdvice*>(context);
  if (advice == nullptr || question.function != nccl::kFuncAllReduce) return Verdict::kUnknown;
  return advice->on(question.bytes);
}

}  // namespace

void init(size_t ranks, size_t nodes, nccl::Logger logger, void** context) {
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
      "for "
      "%s bytes; otherwise %s",
      ranks, nodes, ranges(*advice, Verdict::kPrefer).c_str(),
      ranges(*advice, Verdict::kAvoid).c_str(),
      advice->otherwise == Verdict::kAvoid ? "not" : "as NCCL chooses");
  *context = advice.release();
}

void adjust(const void* context, const Question& question, const CostTable& table) {
  const Verdict verdict = verdict_for(context, question);
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

void choose(const void* context, const Question& question, bool supported, int* algorithm,
            int* protocol) {
  if (!supported || algorithm == nullptr || protocol == nullptr) return;
  if (verdict_for(context, question) != Verdict::kPrefer) return;
  // NCCL 2.21 takes our word without a look at its own model, so what NCCL_PROTO excludes is ours
  // to see (v2.21.5 src/enqueue.cc, getTunerInfo).
  const char* const allowed = set_variable("NCCL_PROTO");
  if (allowed != nullptr && !allows_protocol(allowed, "simple")) return;
  *algorithm = nccl::kAlgoCollNetChain;
  *protocol = nccl::kProtoSimple;
}

void destroy(void* context) { delete static_cast<TunerAdvice*>(context); }

}  // namespace slime::plugin::tuner
