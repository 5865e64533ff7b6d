// How programs learn of the ends of requests that they do not test.
//
// States of such a request: open; ended, with its handle in one of the lists here; taken, by who
// removes its handle from the table of requests. So each end is told once, also when a thread tests
// the request meanwhile: then its handle finds nothing, and is dropped.
//
// Memory: kMostStale handles, or twice as many as there are requests of this kind. Threads: any; a
// mutex guards all.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory_resource>
#include <mutex>
#include <optional>

#include "peer/moving/peer_request.h"
#include "peer/ready_fd.h"

namespace slime {

// Of one request.
struct Completion {
  enum class By : uint8_t { kTest, kList, kCallback };
  By by = By::kTest;
  void* user = nullptr;
  void (*function)() = nullptr;  // the program's; who calls it knows its type
};

struct Ended {
  uint64_t request = 0;
  Completion completion;
  Outcome outcome;
};

// Handles of requests that have ended.
class Completions final : public EndListener {
 public:
  static constexpr size_t kMostStale = 1024;

  // `wake` is called when there is a callback to run; `is_open`: whether a handle is not taken yet.
  Completions(ReadyFd& ready, std::pmr::memory_resource* memory, std::function<void()> wake,
              std::function<bool(uint64_t)> is_open)
      : ready_(ready),
        wake_(std::move(wake)),
        is_open_(std::move(is_open)),
        to_fetch_(memory),
        to_call_(memory) {}

  void on_end(uint64_t handle, bool calls_back) override {
    {
      const std::lock_guard lock(mutex_);
      List& list = calls_back ? to_call_ : to_fetch_;
      list.handles.push_back(handle);
      if (list.handles.size() >= list.prune_at) prune(list);
      if (!calls_back) ready_.set(ReadyFd::kCompletions);
    }
    if (calls_back) wake_();
  }
  // 0: none.
  uint64_t next_to_fetch() {
    const std::lock_guard lock(mutex_);
    const uint64_t handle = pop(to_fetch_);
    if (to_fetch_.handles.empty()) ready_.clear(ReadyFd::kCompletions);
    return handle;
  }
  uint64_t next_to_call() {
    const std::lock_guard lock(mutex_);
    return pop(to_call_);
  }

 private:
  struct List {
    explicit List(std::pmr::memory_resource* memory) : handles(memory) {}
    std::pmr::deque<uint64_t> handles;  // the first to end first
    size_t prune_at = kMostStale;
  };

  static uint64_t pop(List& list) {
    if (list.handles.empty()) return 0;
    const uint64_t handle = list.handles.front();
    list.handles.pop_front();
    return handle;
  }
  void prune(List& list) {
    std::erase_if(list.handles, [this](uint64_t handle) { return !is_open_(handle); });
    list.prune_at = std::max(kMostStale, 2 * list.handles.size());
  }

  ReadyFd& ready_;
  const std::function<void()> wake_;
  const std::function<bool(uint64_t)> is_open_;
  std::mutex mutex_;
  List to_fetch_, to_call_;
};

}  // namespace slime
