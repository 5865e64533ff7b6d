// A switch in P4 on a thread of its own. The controller's thread waits a little for a device, so
// that a device in order has done a call when the call returns, but never long: the control
// channel, leases and signals are served whatever the device does.
//
// The controller may wait for kPatience, which it gets back at a fifth of the time that passes. A
// job that it adds or fences has kLeastPatience in any case, which is enough for a device in order.
// The other calls have not, as one request may need many of them. A call that takes longer is
// refused, and so is every other call until it has ended: it goes on, and ends by the deadlines of
// its parts. A job that has been added or fenced too late is removed again; one that has been
// removed too late counts as removed when the controller repeats the call. While the switch is
// lost, every call is refused at once.
//
// States of the call: none; waiting for the thread; begun; late (begun, and the controller does not
// wait any more). Only in the first can the next one be made.
// Thread rules: the driver's functions are for the controller's thread. The P4Switch belongs to the
// thread of this class, but for its shape() and is_lost(). A call shares no memory with a caller
// that has left: it owns its arguments and its result.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "switch/p4driver/p4_switch.h"

namespace slime::net {

class DeviceThread final : public SwitchDriver {
 public:
  using Duration = std::chrono::milliseconds;
  static constexpr Duration kPatience{700}, kLeastPatience{250};

  explicit DeviceThread(std::unique_ptr<P4Switch> of);
  // Waits for the end of one call of the device at most, not of all that an operation has.
  ~DeviceThread() override;

  SwitchShape shape() const override { return switch_->shape(); }
  Result<void> add_job(const JobSpec& spec) override;
  Result<void> remove_job(uint16_t job) override;
  Result<void> fence(uint16_t job, uint8_t generation, uint32_t token) override;
  Result<JobTotals> totals(uint16_t job) const override;
  // Those of the last time where the device does not answer.
  std::vector<DeviceCounter> counters() const override;

 private:
  using Clock = std::chrono::steady_clock;
  struct Call {
    std::function<void()> make, if_late;
    bool begun = false, done = false, late = false;
  };

  template <typename T>
  Result<T> ask(const char* what, Duration least, std::function<Result<T>(P4Switch&)> make,
                std::function<void(P4Switch&)> if_late = {}) const;
  Result<void> wait_for(const char* what, Duration least, Call call) const;
  void remember_removed(uint16_t job);
  void run();
  void allow_operation();
  void make(std::unique_lock<std::mutex>& lock);

  const std::unique_ptr<P4Switch> switch_;
  mutable std::mutex mutex_;
  mutable std::condition_variable asked_, done_;
  mutable std::shared_ptr<Call> call_;  // with mutex_, as are the next two
  std::set<uint16_t> removed_late_;
  bool ends_ = false;
  // The controller's.
  mutable Duration patience_ = kPatience;
  mutable Clock::time_point patience_at_ = Clock::now();
  mutable std::vector<DeviceCounter> counters_;
  std::thread thread_;
};

}  // namespace slime::net
