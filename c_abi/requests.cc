// Requests of include/slime/slime.h.
#include "c_abi/boundary.h"

using namespace slime;
using namespace slime::api;

namespace {

static_assert(sizeof(slime_assignment) == sizeof(Assignment));
static_assert(offsetof(slime_assignment, local) == offsetof(Assignment, local));
static_assert(offsetof(slime_assignment, remote) == offsetof(Assignment, remote));
static_assert(offsetof(slime_assignment, local_offset) == offsetof(Assignment, local_offset));
static_assert(offsetof(slime_assignment, remote_offset) == offsetof(Assignment, remote_offset));
static_assert(offsetof(slime_assignment, length) == offsetof(Assignment, bytes));

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
  result_text() = with_option_names(outcome.error.what);
  const slime_result told = {sizeof told,
                             status_of(outcome.error.status),
                             outcome.quiet ? 1 : 0,
                             result_text().c_str(),
                             outcome.bytes,
                             outcome.queued_ns,
                             outcome.moved_ns,
                             outcome.peer,
                             outcome.tag};
  return write_struct(told, result) ? static_cast<int>(SLIME_OK) : invalid(kNoResultSize);
}

}  // namespace

extern "C" {

int slime_submit(slime_engine* engine, slime_peer peer, int op, const slime_assignment* assignments,
                 size_t count, const slime_extra* extra, slime_request* request) {
  return guarded([&] {
    if (engine == nullptr || request == nullptr || (assignments == nullptr && count > 0)) {
      return invalid("slime_submit: an argument is NULL");
    }
    if (op != SLIME_READ && op != SLIME_WRITE) {
      return invalid("slime_submit: op is neither SLIME_READ nor SLIME_WRITE");
    }
    Extra known;
    if (!read_extra(extra, &known)) return invalid(kWrongExtra);
    const auto* const pieces = reinterpret_cast<const Assignment*>(assignments);
    auto submitted = engine->engine->submit(peer, op == SLIME_READ ? Opcode::kRead : Opcode::kWrite,
                                            {pieces, count}, known);
    if (!submitted) return failed(submitted.error());
    *request = *submitted;
    return static_cast<int>(SLIME_OK);
  });
}

int slime_test(slime_engine* engine, slime_request request, slime_result* result) {
  return guarded([&] {
    if (engine == nullptr) return invalid("slime_test: engine is NULL");
    if (!has_size(result)) return invalid(kNoResultSize);
    Outcome outcome;
    const auto tested = engine->engine->test(request, &outcome);
    return tell(tested, outcome, result);
  });
}

int slime_wait(slime_engine* engine, slime_request request, int64_t timeout_ns,
               slime_result* result) {
  return guarded([&] {
    if (engine == nullptr) return invalid("slime_wait: engine is NULL");
    if (!has_size(result)) return invalid(kNoResultSize);
    Outcome outcome;
    const uint64_t limit_ns = timeout_ns < 0 ? UINT64_MAX : static_cast<uint64_t>(timeout_ns);
    const auto waited = engine->engine->wait(request, limit_ns, &outcome);
    return tell(waited, outcome, result);
  });
}

int slime_cancel(slime_engine* engine, slime_request request) {
  return guarded([&] {
    if (engine == nullptr) return invalid("slime_cancel: engine is NULL");
    auto cancelled = engine->engine->cancel(request);
    return cancelled ? static_cast<int>(SLIME_OK) : failed(cancelled.error());
  });
}

int slime_release(slime_engine* engine, uint64_t handle) {
  return guarded([&] {
    if (engine == nullptr) return invalid("slime_release: engine is NULL");
    if (engine->engine->release(handle)) return static_cast<int>(SLIME_OK);
    return invalid("slime_release: no such request, remote region or notification (any more)");
  });
}

}  // extern "C"
