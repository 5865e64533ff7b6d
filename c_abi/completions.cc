// Ends of requests that programs do not test: lists and functions of include/slime/slime.h.
#include <deque>

#include "c_abi/boundary.h"

using namespace slime;
using namespace slime::api;

namespace slime::api {

slime_result result_of(const Outcome& outcome, std::string* text) {
  *text = with_option_names(outcome.error.what);
  slime_result result = {sizeof(slime_result),
                         status_of(outcome.error.status),
                         outcome.quiet ? 1 : 0,
                         text->c_str(),
                         outcome.bytes,
                         outcome.queued_ns,
                         outcome.moved_ns,
                         outcome.peer,
                         outcome.tag,
                         outcome.retries,
                         {}};
  static_assert(sizeof result.rail_bytes == sizeof outcome.rail_bytes);
  std::ranges::copy(outcome.rail_bytes, result.rail_bytes);
  return result;
}

void set_callbacks(const slime_options& given, EngineOptions* options) {
  options->on_end = [](const Ended& ended) {
    const slime_result result = result_of(ended.outcome, &result_text());
    const Completion& completion = ended.completion;
    reinterpret_cast<slime_callback>(completion.function)(completion.user, ended.request, &result);
  };
  if (given.on_immediate == nullptr) return;
  options->on_immediate = [function = given.on_immediate,
                           user = given.user](const UnexpectedImmediate& one) {
    function(user, one.peer, one.immediate);
  };
}

}  // namespace slime::api

namespace {

static_assert(uint32_t{SLIME_EVENT_COMPLETED} == ReadyFd::kCompletions);
static_assert(uint32_t{SLIME_EVENT_NOTIFICATIONS} == ReadyFd::kNotices);
static_assert(uint32_t{SLIME_EVENT_PEERS} == ReadyFd::kPeers);

// Of the completions that this thread has fetched last.
std::deque<std::string>& texts() {
  thread_local std::deque<std::string> all;
  return all;
}

slime_completion completion_of(const Ended& ended) {
  const bool good = ended.outcome.error.status == Status::kOk;
  std::string none;
  const slime_result result = result_of(ended.outcome, good ? &none : &texts().emplace_back());
  return {
      ended.request, ended.completion.user, result.status,   result.quiet, good ? "" : result.text,
      result.bytes,  result.queued_ns,      result.moved_ns, result.peer,  result.tag};
}

}  // namespace

extern "C" {

int slime_completed(slime_engine* engine, slime_completion* completions, size_t* count) {
  return guarded(engine, [&] {
    if (engine == nullptr || count == nullptr || (completions == nullptr && *count > 0)) {
      return invalid("slime_completed: an argument is NULL");
    }
    const size_t room = *count;
    texts().clear();
    for (*count = 0; *count < room; ++*count) {
      const auto ended = engine->engine->next_completed();
      if (!ended) break;
      completions[*count] = completion_of(*ended);
    }
    return static_cast<int>(SLIME_OK);
  });
}

int slime_event_fd(slime_engine* engine, uint32_t events, int* descriptor) {
  return guarded(engine, [&] {
    if (engine == nullptr || descriptor == nullptr) {
      return invalid("slime_event_fd: an argument is NULL");
    }
    const uint32_t all = SLIME_EVENT_COMPLETED | SLIME_EVENT_NOTIFICATIONS | SLIME_EVENT_PEERS;
    if (events == 0 || (events & ~all) != 0) {
      return invalid("slime_event_fd: events are none of SLIME_EVENT_...");
    }
    const auto made = engine->engine->ready_descriptor(events);
    if (!made) return failed(made.error());
    *descriptor = *made;
    return static_cast<int>(SLIME_OK);
  });
}

}  // extern "C"
