// All rails of this process and the devices they form. Opened once, at the plugin's first init.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "engine/device.h"
#include "settings/settings.h"
#include "transports/rail_counters.h"

namespace slime {

struct RailReport {
  std::string device, rail, transport, address;
  uint64_t speed_mbps = 0;
  RailTotals totals;
};

class Fabric {
 public:
  // No usable NIC is no error: the fabric then has no devices and notes() says why.
  static Result<std::unique_ptr<Fabric>> open(const Settings& settings, const Clock& clock);
  // For tests and benchmarks: rails made elsewhere. The housekeeper advances their idle comms only
  // if the test says so: a simulated network belongs to one thread.
  static std::unique_ptr<Fabric> of_rails(std::vector<std::unique_ptr<Rail>> rails,
                                          const Settings& settings, const Clock& clock,
                                          bool progresses_idle_comms = false);

  size_t device_count() const;
  Device* device(int index);  // nullptr: no such device
  // One device over the rails of several; returns its index. Merging the same set again returns
  // the same index.
  Result<int> merge(std::span<const int> devices);

  const Settings& settings() const { return settings_; }
  const Clock& clock() const { return clock_; }
  // By the housekeeper's thread; see comm_progress.h.
  bool progresses_idle_comms() const { return progresses_idle_comms_; }
  const std::vector<std::string>& notes() const { return notes_; }  // skipped NICs, and why

  // Counters of closed channels are folded in here; report() adds nothing of open ones.
  void fold(const Rail& rail, const RailTotals& totals);
  std::vector<RailReport> report() const;

 private:
  Fabric(const Settings& settings, const Clock& clock) : settings_(settings), clock_(clock) {}
  void adopt(std::vector<std::unique_ptr<Rail>> rails);
  void group_rails();
  int add_device(const std::vector<Rail*>& rails, std::vector<int> members);

  const Settings settings_;
  const Clock& clock_;
  bool progresses_idle_comms_ = true;
  std::vector<std::string> notes_;
  std::vector<std::unique_ptr<Rail>> rails_;
  mutable std::mutex mutex_;        // guards what follows: merges come after opening
  std::deque<Device> devices_;      // a deque: devices never move
  std::vector<RailTotals> totals_;  // by position in rails_
};

}  // namespace slime
