// What the functions of include/slime/slime.h have in common: results, errors, checks of pointers.
#pragma once

#include <slime/slime.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <string>
#include <thread>
#include <utility>

#include "base/fd.h"
#include "peer/engine/engine.h"

// The object behind the pointer that programs hold.
struct slime_engine {
  std::unique_ptr<slime::Engine> engine;
  const uint32_t process = slime::OwnDescriptors::process();  // that opened it
};

namespace slime::api {

// The texts of this thread's last calls.
std::string& last_error();
std::string& result_text();
// Keeps its text in `text`.
slime_result result_of(const Outcome& outcome, std::string* text);

// A program's function, as the engine keeps it.
using Function = void (*)();

int status_of(Status status);
int failed(const Error& error);  // keeps its text, in a library's words
int invalid(const char* what);
int tell(const Result<uint64_t>& made, uint64_t* handle);

// Runs a call. No exception leaves it: the only ones are of memory that ran out.
template <typename Call>
int guarded(Call call) {
  try {
    return call();
  } catch (const std::exception& error) {
    return failed(make_error(Status::kNoMemory, 0, "%s", error.what()));
  }
}

// A child of fork(2) has a copy of the engine without its threads, and with locks that nobody gives
// back.
inline bool is_of_parent(const slime_engine* engine) {
  return engine != nullptr && engine->process != OwnDescriptors::process();
}

// A call about an engine.
template <typename Call>
int guarded(const slime_engine* engine, Call call) {
  if (!is_of_parent(engine)) return guarded(std::move(call));
  return invalid(
      "this engine belongs to the process that this one was forked from; open another here");
}

// A struct of a program, which may be older or newer than the library: its first member says how
// long it is, as in one of the versions that there were. `known` keeps its values for what an older
// one does not have. A newer one is refused if it has more than zeros beyond what is known here.
// nullptr: all as in `known`.
inline constexpr size_t kLongestStruct = 4096;

template <typename Struct>
bool read_struct(const Struct* given, Struct* known) {
  if (given == nullptr) return true;
  size_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (size < sizeof *known || size > kLongestStruct) return false;  // there was one version so far
  const auto* const bytes = reinterpret_cast<const unsigned char*>(given);
  if (std::any_of(bytes + sizeof *known, bytes + size,
                  [](unsigned char byte) { return byte != 0; }))
    return false;
  std::memcpy(known, given, sizeof *known);
  return true;
}

inline uint64_t limit_of(int64_t timeout_ns) {
  return timeout_ns < 0 ? UINT64_MAX : static_cast<uint64_t>(timeout_ns);
}

inline constexpr uint64_t kPauseNs = 100'000;
// Asks until it is so, or the time is over.
template <typename Condition>
bool in_time(uint64_t limit_ns, Condition is_so) {
  const uint64_t begin_ns = steady_now_ns();
  while (!is_so()) {
    if (steady_now_ns() - begin_ns >= limit_ns) return is_so();
    std::this_thread::sleep_for(std::chrono::nanoseconds(kPauseNs));
  }
  return true;
}

// Writes as much as the program has room for.
template <typename Struct>
bool write_struct(Struct value, Struct* to) {
  size_t size = 0;
  std::memcpy(&size, to, sizeof size);
  if (size < sizeof value || size > kLongestStruct) return false;
  value.size = size;
  std::memcpy(to, &value, sizeof value);
  return true;
}

inline constexpr const char* kWrongExtra =
    "extra.size is wrong (begin with SLIME_EXTRA_INIT), a flag is unknown, its deadline is "
    "negative, its notification is NULL, or it has both SLIME_COMPLETES and a callback";
inline constexpr const char* kCallsBack =
    "a function that libslime calls must not wait: it is called by the engine's thread";

bool read_extra(const slime_extra* given, Extra* known);
// How the engine calls the functions of the program.
void set_callbacks(const slime_options& given, EngineOptions* options);

}  // namespace slime::api
