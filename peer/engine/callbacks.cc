// The program's functions, and who calls them: the engine's thread, and at the end slime_close().
#include "peer/engine/engine.h"

namespace slime {
namespace {

thread_local bool calling_back = false;
constexpr size_t kCallsATurn = 64;  // then the engine's thread looks after links

}  // namespace

bool Engine::is_calling_back() { return calling_back; }

std::optional<Ended> Engine::next_completed() {
  while (const uint64_t handle = completions_.next_to_fetch()) {
    if (const auto taken = requests_.remove(handle)) {
      return Ended{handle, taken->completion, taken->request->outcome()};
    }
  }
  return std::nullopt;
}

void Engine::call_back() {
  if (call_back(kCallsATurn) == kCallsATurn) wake();
}

// Returns how many functions it has called.
size_t Engine::call_back(size_t most) {
  size_t count = 0;
  calling_back = true;
  while (count < most && call_back_once()) ++count;
  calling_back = false;
  return count;
}

bool Engine::call_back_once() {
  if (const auto unexpected = unexpected_.next()) {
    if (handles_.find(unexpected->peer) != nullptr) options_.on_immediate(*unexpected);
    return true;
  }
  const uint64_t handle = completions_.next_to_call();
  if (handle == 0) return false;
  if (const auto taken = requests_.remove(handle)) {
    options_.on_end({handle, taken->completion, taken->request->outcome()});
  }
  return true;
}

}  // namespace slime
