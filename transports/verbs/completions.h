// Where a channel takes its completions from: a completion queue of its own, or its place at one
// that it shares with the other channels of a poller.
//
// It outlives the queue pairs of the channel. Thread: that of the channel.
#pragma once

#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "transports/verbs/shared_queue.h"

namespace slime::verbs {

class Completions {
 public:
  Completions() = default;
  explicit Completions(CompletionQueue own) : own_(std::move(own)) {}
  Completions(std::shared_ptr<SharedQueue> shared, uint16_t place)
      : shared_(std::move(shared)), place_(place) {}
  Completions(Completions&&) = default;
  Completions& operator=(Completions&&) = delete;
  ~Completions() {
    if (shared_ != nullptr) shared_->give_back(place_);
  }

  ibv_cq* queue() const { return shared_ != nullptr ? shared_->get() : own_.get(); }
  uint16_t place() const { return place_; }  // WorkId::place of all its work requests
  // As ibv_poll_cq(3). Negative: failure() says why.
  int poll(std::span<ibv_wc> completions) const {
    if (shared_ != nullptr) return shared_->poll(place_, completions);
    return ibv_poll_cq(own_.get(), static_cast<int>(completions.size()), completions.data());
  }
  Error failure() const {
    return shared_ != nullptr ? shared_->failure()
                              : system_error(EIO, "ibv_poll_cq failed; see dmesg");
  }
  const std::shared_ptr<SharedQueue>& shared() const { return shared_; }  // nullptr: its own
  // Only on a poller.
  bool arm() const { return shared_->arm(place_); }
  void disarm() const { shared_->disarm(place_); }

 private:
  CompletionQueue own_;
  std::shared_ptr<SharedQueue> shared_;
  uint16_t place_ = 0;
};

// Calls take(completion) for all that are there. Negative: see poll().
template <typename Take>
int take_all(const Completions& from, Take take) {
  std::array<ibv_wc, 64> completions;
  int count = 0;
  do {
    count = from.poll(completions);
    for (int i = 0; i < count; ++i) take(completions[static_cast<size_t>(i)]);
  } while (count == static_cast<int>(completions.size()));
  return count;
}

}  // namespace slime::verbs
