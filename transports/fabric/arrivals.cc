#include "transports/fabric/arrivals.h"

#include <algorithm>

#include "transports/channel_common.h"

namespace slime::fabric {

void Arrivals::add(uint32_t immediate, uint64_t bytes) {
  kept_.push_back(slime::arrived(immediate, bytes));
  ++count_;
}

bool Arrivals::cancel(std::span<const uint32_t> immediates) {
  if (cancelled_.size() + immediates.size() > most_cancelled_) return false;
  cancelled_.insert(cancelled_.end(), immediates.begin(), immediates.end());
  return true;
}

bool Arrivals::is_cancelled(uint32_t immediate) {
  const auto found = std::ranges::find(cancelled_, immediate);
  if (found == cancelled_.end()) return false;
  cancelled_.erase(found);
  return true;
}

void Arrivals::take(std::span<Done> done, size_t* count, RailCounters& counters) {
  size_t taken = 0;
  for (; taken < kept_.size() && *count < done.size(); ++taken) {
    const Done& arrival = kept_[taken];
    if (is_cancelled(arrival.immediate)) continue;
    counters.arrivals.add();
    counters.bytes_received.add(arrival.bytes);
    done[(*count)++] = arrival;
    if (confirms_) to_confirm_.push_back(arrival.immediate);
  }
  kept_.erase(kept_.begin(), kept_.begin() + static_cast<ptrdiff_t>(taken));
}

}  // namespace slime::fabric
