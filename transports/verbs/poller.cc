#include "transports/verbs/poller.h"

#include <algorithm>
#include <cerrno>

namespace slime::verbs {
namespace {

constexpr uint64_t kFirstPlaces = 4096;  // of a completion queue that is to grow

}  // namespace

Result<std::unique_ptr<Poller>> VerbsPoller::open(const Rail& rail,
                                                  const std::shared_ptr<Nic>& nic) {
  auto events = nic->create_event_channel();
  if (!events) return fail(std::move(events.error()));
  return std::unique_ptr<Poller>(new VerbsPoller(rail, nic, std::move(*events)));
}

Result<Completions> VerbsPoller::add(uint32_t requests, uint64_t tag) {
  const std::lock_guard lock(mutex_);
  std::erase_if(queues_, [](const auto& queue) { return queue->is_over(); });
  uint16_t place = 0;
  for (const auto& queue : queues_) {
    if (queue->take_place(requests, tag, &place) == Status::kOk) return Completions(queue, place);
  }
  auto another = SharedQueue::open(nic_, events_, requests, places_of_next());
  if (!another) return fail(std::move(another.error()));
  if ((*another)->take_place(requests, tag, &place) != Status::kOk) {
    return fail(make_error(Status::kInternal, 0,
                           "a new completion queue has no room for %u requests; please report this",
                           requests));
  }
  queues_.push_back(*another);
  return Completions(*another, place);
}

// Queues that do not grow are each twice as long as the one before, so that few are read. One that
// is as long as the NIC lets it be is followed by one that can grow.
uint64_t VerbsPoller::places_of_next() const {
  const auto most = static_cast<uint64_t>(std::max(nic_->attributes().max_cqe, 1));
  const uint64_t last = queues_.empty() ? most : queues_.back()->places();
  return last < most ? 2 * last : kFirstPlaces;
}

size_t VerbsPoller::poll(std::span<uint64_t> tags) {
  const std::lock_guard lock(mutex_);
  size_t count = 0;
  const size_t first = first_++;
  for (size_t i = 0; i < queues_.size(); ++i) {
    count += queues_[(first + i) % queues_.size()]->take_tags(tags.subspan(count));
  }
  return count;
}

// The events are read before others are asked for, so that the descriptor is readable for new ones
// only; and by one thread at a time, as providers count them without a lock (mlx5_cq_event).
bool VerbsPoller::prepare_to_sleep() {
  const std::lock_guard lock(mutex_);
  nic_->drop_events(*events_);
  return std::ranges::all_of(queues_, [](const auto& queue) { return queue->request_event(); });
}

}  // namespace slime::verbs
