#include "transports/fabric/resting.h"

#include <utility>

namespace slime::fabric {
namespace {

bool is_done(const Endpoint& endpoint, Lifeline& lifeline) {
  const Status status = lifeline.poll();
  LifelineMessage message = LifelineMessage::kHello;
  std::span<const uint32_t> words;
  while (lifeline.next(&message, &words)) {
    if (message == LifelineMessage::kEnd) return true;
  }
  return status != Status::kOk || (endpoint.get() == nullptr && lifeline.all_sent());
}

}  // namespace

void Resting::add(Endpoint endpoint, std::unique_ptr<Lifeline> lifeline) {
  const std::lock_guard lock(mutex_);
  if (resting_.size() == kCapacity) resting_.pop_front();
  resting_.push_back({std::move(endpoint), std::move(lifeline)});
}

void Resting::poll() {
  const std::lock_guard lock(mutex_);
  std::erase_if(resting_, [](const One& one) { return is_done(one.endpoint, *one.lifeline); });
}

size_t Resting::size() const {
  const std::lock_guard lock(mutex_);
  return resting_.size();
}

}  // namespace slime::fabric
