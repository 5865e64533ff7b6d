#include "transports/verbs/shared_queue.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "transports/verbs/work_id.h"

namespace slime::verbs {
namespace {

constexpr size_t kReadAtOnce = 64;
constexpr size_t kMostPlaces = UINT16_MAX;
constexpr size_t kKeptMemory = 64;  // completions that an idle place has memory for, at most

}  // namespace

Result<std::shared_ptr<SharedQueue>> SharedQueue::open(
    const std::shared_ptr<Nic>& nic, const std::shared_ptr<ibv_comp_channel>& events,
    uint32_t requests, uint64_t places) {
  const auto most = static_cast<uint32_t>(std::max(nic->attributes().max_cqe, 1));
  const auto wanted = static_cast<uint32_t>(std::min<uint64_t>(places, most));
  auto queue = nic->create_completion_queue(std::max(requests, wanted), events.get());
  if (queue == nullptr && wanted > requests) {
    queue = nic->create_completion_queue(requests, events.get());
  }
  if (queue == nullptr) {
    return slime::fail(
        system_error(errno,
                     "ibv_create_cq for %u completions failed (max_cqe is %u); open the channel "
                     "with less depth or fewer queue pairs (NCCL_SLIME_QPS_PER_RAIL), and see %s",
                     requests, most, limit_behind(errno)));
  }
  if (const int code = ibv_req_notify_cq(queue.get(), 0); code != 0) {
    return slime::fail(
        system_error(code, "ibv_req_notify_cq of a new completion queue failed; see dmesg"));
  }
  return std::shared_ptr<SharedQueue>(new SharedQueue(nic, events, std::move(queue)));
}

// The queue grows up to what the NIC can do.
bool SharedQueue::make_room(uint32_t requests) {
  SLIME_CHECK(mutex_.held());
  const uint64_t wanted = requests_ + requests, now = static_cast<uint64_t>(queue_->cqe);
  if (wanted <= now) return true;
  const auto most = static_cast<uint64_t>(nic_->attributes().max_cqe);
  if (wanted > most) return false;
  return resize(std::max(wanted, std::min(2 * now, most))) || resize(wanted);
}

bool SharedQueue::resize(uint64_t places) {
  return nic_->verbs().resize_cq(queue_.get(), static_cast<int>(places)) == 0 &&
         static_cast<uint64_t>(queue_->cqe) >= places;
}

Status SharedQueue::take_place(uint32_t requests, uint64_t tag, uint16_t* place) {
  const std::lock_guard lock(mutex_);
  const auto free = std::ranges::find(places_, 0U, &Place::requests);
  if (broken_ != 0 || (free == places_.end() && places_.size() == kMostPlaces)) {
    return Status::kAgain;
  }
  if (!make_room(requests)) return Status::kAgain;
  *place = static_cast<uint16_t>(free - places_.begin());
  if (free == places_.end()) places_.emplace_back();
  places_[*place].requests = requests;
  places_[*place].taken = true;
  places_[*place].tag = tag;
  requests_ += requests;
  ++channels_;
  return Status::kOk;
}

void SharedQueue::give_back(uint16_t place) {
  const std::lock_guard lock(mutex_);
  read_until([] { return false; });
  std::erase(named_, place);
  const Place ended = std::exchange(places_[place], Place());
  --channels_;
  if (ended.has_lost_pair) {
    places_[place].requests = ended.requests;
  } else {
    requests_ -= ended.requests;
  }
}

void SharedQueue::note_lost_pair(uint16_t place) {
  const std::lock_guard lock(mutex_);
  places_[place].has_lost_pair = true;
}

// What was in it before the call, at least.
template <typename Enough>
void SharedQueue::read_until(Enough enough) {
  constexpr auto kBatch = static_cast<int>(kReadAtOnce);
  for (int left = queue_->cqe; left > 0 && !enough(); left -= kBatch) {
    if (read() < kBatch) return;
  }
}

// Once. Returns how many completions there were.
int SharedQueue::read() {
  SLIME_CHECK(mutex_.held());
  std::array<ibv_wc, kReadAtOnce> completions;
  const int count = ibv_poll_cq(queue_.get(), completions.size(), completions.data());
  if (count < 0) fail("ibv_poll_cq", EIO);
  for (int i = 0; i < count; ++i) keep(completions[static_cast<size_t>(i)]);
  return count;
}

void SharedQueue::keep(const ibv_wc& completion) {
  const uint16_t place = WorkId::unpack(completion.wr_id).place;
  SLIME_CHECK(place < places_.size());
  if (!places_[place].taken) return;
  SLIME_CHECK(places_[place].count() < places_[place].requests);
  places_[place].kept.push_back(completion);
  name(place);
}

void SharedQueue::name(uint16_t place) {
  if (std::exchange(places_[place].armed, false)) named_.push_back(place);
}

// Each channel finds out when it is polled.
void SharedQueue::fail(const char* call, int code) {
  if (broken_ == 0) {
    broken_ = code;
    failed_call_ = call;
  }
  for (size_t i = 0; i < places_.size(); ++i) name(static_cast<uint16_t>(i));
}

Error SharedQueue::failure() {
  const std::lock_guard lock(mutex_);
  return system_error(
      broken_, "%s failed, so all channels of that completion queue fail; see dmesg", failed_call_);
}

uint64_t SharedQueue::places() {
  const std::lock_guard lock(mutex_);
  return static_cast<uint64_t>(queue_->cqe);
}

bool SharedQueue::is_over() {
  const std::lock_guard lock(mutex_);
  return broken_ != 0 && channels_ == 0;
}

// Those that were taken are dropped when they are as many as the others, or all.
void SharedQueue::Place::take(std::span<ibv_wc> completions) {
  const auto from = kept.begin() + static_cast<ptrdiff_t>(begin);
  std::copy_n(from, completions.size(), completions.begin());
  begin += completions.size();
  if (begin < count()) return;
  kept.erase(kept.begin(), kept.begin() + static_cast<ptrdiff_t>(begin));
  begin = 0;
  if (kept.empty() && kept.capacity() > kKeptMemory)
    kept = std::vector<ibv_wc>();  // not {}, which keeps the memory
}

int SharedQueue::poll(uint16_t place, std::span<ibv_wc> completions) {
  const std::lock_guard lock(mutex_);
  Place& of_channel = places_[place];
  read_until([&] { return of_channel.count() >= completions.size(); });
  const size_t count = std::min(of_channel.count(), completions.size());
  of_channel.take(completions.first(count));
  return count > 0 || broken_ == 0 ? static_cast<int>(count) : -1;
}

bool SharedQueue::arm(uint16_t place) {
  const std::lock_guard lock(mutex_);
  if (places_[place].count() > 0 || broken_ != 0) return false;
  std::erase(named_, place);
  places_[place].armed = true;
  return true;
}

void SharedQueue::disarm(uint16_t place) {
  const std::lock_guard lock(mutex_);
  places_[place].armed = false;
  std::erase(named_, place);
}

size_t SharedQueue::take_tags(std::span<uint64_t> tags) {
  const std::lock_guard lock(mutex_);
  read_until([] { return false; });
  const size_t count = std::min(tags.size(), named_.size());
  for (size_t i = 0; i < count; ++i) tags[i] = places_[named_[i]].tag;
  named_.erase(named_.begin(), named_.begin() + static_cast<ptrdiff_t>(count));
  return count;
}

bool SharedQueue::request_event() {
  const std::lock_guard lock(mutex_);
  if (const int code = ibv_req_notify_cq(queue_.get(), 0); code != 0) {
    fail("ibv_req_notify_cq", code);
  }
  read_until([] { return false; });
  return named_.empty();
}

}  // namespace slime::verbs
