// How requests of include/slime/slime.h end.
#include "c_abi/boundary.h"

using namespace slime;
using namespace slime::api;

namespace {

constexpr const char* kNoResultSize = "result.size is wrong: begin with SLIME_RESULT_INIT";

// Before a call that ends the request: it would not be told again.
bool has_size(const slime_result* result) {
  return result == nullptr || (result->size >= sizeof *result && result->size <= kLongestStruct);
}

int tell(const Result<Status>& tested, const Outcome& outcome, slime_result* result) {
  if (!tested) return failed(tested.error());
  if (*tested != Status::kOk) return status_of(*tested);
  if (result == nullptr)
    return outcome.error.status == Status::kOk ? SLIME_OK : failed(outcome.error);
  return write_struct(result_of(outcome, &result_text()), result) ? static_cast<int>(SLIME_OK)
                                                                  : invalid(kNoResultSize);
}

}  // namespace

extern "C" {

int slime_test(slime_engine* engine, slime_request request, slime_result* result) {
  return guarded(engine, [&] {
    if (engine == nullptr) return invalid("slime_test: engine is NULL");
    if (!has_size(result)) return invalid(kNoResultSize);
    Outcome outcome;
    const auto tested = engine->engine->test(request, &outcome);
    return tell(tested, outcome, result);
  });
}

int slime_wait(slime_engine* engine, slime_request request, int64_t timeout_ns,
               slime_result* result) {
  return guarded(engine, [&] {
    if (engine == nullptr) return invalid("slime_wait: engine is NULL");
    if (!has_size(result)) return invalid(kNoResultSize);
    if (Engine::is_calling_back() && timeout_ns != 0) return invalid(kCallsBack);
    Outcome outcome;
    const auto waited = engine->engine->wait(request, limit_of(timeout_ns), &outcome);
    return tell(waited, outcome, result);
  });
}

int slime_cancel(slime_engine* engine, slime_request request) {
  return guarded(engine, [&] {
    if (engine == nullptr) return invalid("slime_cancel: engine is NULL");
    auto cancelled = engine->engine->cancel(request);
    return cancelled ? static_cast<int>(SLIME_OK) : failed(cancelled.error());
  });
}

int slime_release(slime_engine* engine, uint64_t handle) {
  return guarded(engine, [&] {
    if (engine == nullptr) return invalid("slime_release: engine is NULL");
    if (engine->engine->release(handle)) return static_cast<int>(SLIME_OK);
    return invalid(
        "slime_release: no such request, plan, remote region or notification (any more)");
  });
}

}  // extern "C"
