#include "switch/p4driver/device_thread.h"

#include <algorithm>
#include <optional>

namespace slime::net {

using std::chrono::milliseconds;

DeviceThread::DeviceThread(std::unique_ptr<P4Switch> of)
    : switch_(std::move(of)), counters_(switch_->counters()), thread_([this] { run(); }) {}

DeviceThread::~DeviceThread() {
  {
    std::lock_guard lock(mutex_);
    ends_ = true;
    switch_->end_by({});
  }
  asked_.notify_all();
  thread_.join();
}

// With mutex_: the time limit of what follows. The destructor's limit is the last one.
void DeviceThread::allow_operation() {
  if (!ends_) switch_->end_by(Clock::now() + P4Switch::kOperation);
}

// The thread: one call after the other, and between them the maintenance of the switch.
void DeviceThread::run() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    asked_.wait_for(lock, P4Switch::kCheckEvery, [this] { return ends_ || call_ != nullptr; });
    if (ends_) break;
    if (call_) make(lock);
    allow_operation();
    lock.unlock();
    switch_->maintain();
    lock.lock();
  }
}

void DeviceThread::make(std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<Call> call = call_;
  call->begun = true;
  allow_operation();
  lock.unlock();
  call->make();
  lock.lock();
  if (call->late && call->if_late) {
    allow_operation();
    lock.unlock();
    call->if_late();
    lock.lock();
  }
  call->done = true;
  call_ = nullptr;
  done_.notify_all();
}

// Hands the call to the thread. An error: it is not made, or it is late.
Result<void> DeviceThread::wait_for(const char* what, Duration least, Call call) const {
  std::unique_lock lock(mutex_);
  if (switch_->is_lost()) return fail(switch_->lost());
  if (call_) {
    return fail(Status::kRemote, "%s is not asked to %s: it is still busy with an earlier call",
                switch_->name().c_str(), what);
  }
  const auto begin = Clock::now();
  const auto regained = std::chrono::duration_cast<milliseconds>(begin - patience_at_) / 5;
  patience_ = std::min(kPatience, patience_ + regained);
  const Duration limit = std::max(patience_, least);
  if (limit == Duration::zero()) {
    return fail(Status::kRemote, "%s is not asked to %s now: it is slow, and other callers wait",
                switch_->name().c_str(), what);
  }
  const auto own = std::make_shared<Call>(std::move(call));
  call_ = own;
  asked_.notify_all();
  const bool done = done_.wait_for(lock, limit, [&] { return own->done; });
  patience_at_ = Clock::now();
  const auto waited = std::chrono::duration_cast<milliseconds>(patience_at_ - begin);
  patience_ -= std::min(patience_, waited);
  if (done) return {};
  own->late = true;
  if (!own->begun) call_ = nullptr;
  return fail(Status::kRemote,
              "%s has not done it in %lld ms (%s), and other callers wait; is the device, or the "
              "way to it, overloaded?",
              switch_->name().c_str(), static_cast<long long>(waited.count()), what);
}

template <typename T>
Result<T> DeviceThread::ask(const char* what, Duration least,
                            std::function<Result<T>(P4Switch&)> make,
                            std::function<void(P4Switch&)> if_late) const {
  const auto result = std::make_shared<std::optional<Result<T>>>();
  Call call;
  call.make = [result, make = std::move(make), to = switch_.get()] { *result = make(*to); };
  call.if_late = [result, if_late = std::move(if_late), to = switch_.get()] {
    if (if_late && **result) if_late(*to);
  };
  if (auto made = wait_for(what, least, std::move(call)); !made)
    return fail(std::move(made.error()));
  return std::move(**result);
}

Result<void> DeviceThread::add_job(const JobSpec& spec) {
  return ask<void>(
      "add a job", kLeastPatience, [spec](P4Switch& to) { return to.add_job(spec); },
      [job = spec.job](P4Switch& to) { (void)to.remove_job(job); });
}

Result<void> DeviceThread::remove_job(uint16_t job) {
  {
    std::lock_guard lock(mutex_);
    if (removed_late_.erase(job) != 0) return {};
  }
  return ask<void>(
      "remove a job", Duration::zero(), [job](P4Switch& to) { return to.remove_job(job); },
      [this, job](P4Switch&) { remember_removed(job); });
}

void DeviceThread::remember_removed(uint16_t job) {
  std::lock_guard lock(mutex_);
  removed_late_.insert(job);
}

// Late, the device has a generation that the controller knows nothing of: the job ends there, and
// its workers ask for another.
Result<void> DeviceThread::fence(uint16_t job, uint8_t generation, uint32_t token) {
  return ask<void>(
      "fence a job", kLeastPatience, [=](P4Switch& to) { return to.fence(job, generation, token); },
      [this, job](P4Switch& to) {
        if (to.remove_job(job)) remember_removed(job);
      });
}

Result<JobTotals> DeviceThread::totals(uint16_t job) const {
  return ask<JobTotals>("read counters", Duration::zero(),
                        [job](P4Switch& to) { return to.totals(job); });
}

std::vector<DeviceCounter> DeviceThread::counters() const {
  using Counters = std::vector<DeviceCounter>;
  auto read = ask<Counters>("read counters", Duration::zero(),
                            [](P4Switch& to) -> Result<Counters> { return to.counters(); });
  if (read) counters_ = std::move(*read);
  return counters_;
}

}  // namespace slime::net
