#include "plugin/tuner.h"

#include <slime/log.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

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

// Of one communicator.
struct Tuner {
  std::vector<TunerRule> rules;
};

const char* set_variable(const char* name) {
  const char* const value = getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;  // NCCL takes empty lists for none
}

std::string ranges(const std::vector<TunerRule>& rules, Verdict verdict) {
  constexpr size_t kMostShown = 8;
  std::string text;
  size_t count = 0;
  for (const TunerRule& rule : rules) {
    if (rule.verdict != verdict || count++ >= kMostShown) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(rule.from_bytes) + " to " +
            std::to_string(rule.to_bytes);
  }
  if (count > kMostShown) text += ", and " + std::to_string(count - kMostShown) + " more ranges";
  return text.empty() ? "none" : text;
}

// The reason why NCCL is left alone; empty with no rules: nothing worth a line.
std::string find_rules(size_t ranks, size_t nodes, std::vector<TunerRule>* rules) {
  const auto policy = State::get().tuner_policy();
  if (policy == nullptr) return {};
  if (!policy->file) return policy->why_not;
  if (const char* const chosen = set_variable("NCCL_ALGO")) {
    return "NCCL_ALGO=" + std::string(chosen) + " is set";
  }
  *rules = policy->file->rules_for(ranks, nodes);
  return rules->empty() ? "the tuner file has no line for this shape" : "";
}

Verdict verdict_for(const void* context, const Question& question) {
  const auto* const tuner = static_cast<const Tuner*>(context);
  if (tuner == nullptr || question.function != nccl::kFuncAllReduce) return Verdict::kUnknown;
  return verdict_on(tuner->rules, question.bytes);
}

}  // namespace

void init(size_t ranks, size_t nodes, nccl::Logger logger, void** context) {
  if (context == nullptr) return;
  *context = nullptr;
  if (logger != nullptr) set_logger(logger);
  auto tuner = std::make_unique<Tuner>();
  const std::string reason = find_rules(ranks, nodes, &tuner->rules);
  if (!reason.empty()) {
    SLIME_INFO("tuner: %zu ranks on %zu nodes: NCCL chooses by its own model: %s", ranks, nodes,
               reason.c_str());
  }
  if (tuner->rules.empty()) return;
  SLIME_INFO(
      "tuner: %zu ranks on %zu nodes: all_reduce by CollNet where supported and measured to win, "
      "bytes: %s; not where it lost: %s; NCCL chooses the rest",
      ranks, nodes, ranges(tuner->rules, Verdict::kPrefer).c_str(),
      ranges(tuner->rules, Verdict::kAvoid).c_str());
  *context = tuner.release();
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

void destroy(void* context) { delete static_cast<Tuner*>(context); }

}  // namespace slime::plugin::tuner
