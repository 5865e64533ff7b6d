// All rails of this process and the devices that they form. The plugin opens them once, at its
// first init.
//
// State: rails and notes are complete when open() returns, and never change. A device is only added
// (merge), and never moves or ends before this does. Counters only grow (fold).
// Threads: any; one mutex guards devices and counters.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/interfaces/traffic.h"
#include "devices/device.h"
#include "devices/outages.h"
#include "settings/settings.h"
#include "transports/rail_counters.h"

namespace slime {

struct RailReport {
  std::string device, rail, transport, address;
  uint64_t speed_mbps = 0;
  RailTotals totals;
};
// What a network interface below rails has carried since the devices were opened, for all programs.
struct InterfaceReport {
  std::string name;
  Traffic traffic;
};

class Devices {
 public:
  // Without a usable NIC there are none, and notes() says why; that is no error.
  static Result<std::unique_ptr<Devices>> open(const Settings& settings, const Clock& clock);
  // For tests and benchmarks, with rails of their own. The housekeeper advances idle comms only if
  // the test allows it, because a simulated network belongs to one thread.
  static std::unique_ptr<Devices> of_rails(std::vector<std::unique_ptr<Rail>> rails,
                                           const Settings& settings, const Clock& clock,
                                           bool progresses_idle_comms = false);

  size_t device_count() const;
  Device* device(int index);  // nullptr: no such device
  // Makes one device of the rails of several, and returns its index. Merging the same devices again
  // returns the same index.
  Result<int> merge(std::span<const int> devices);

  const Settings& settings() const { return settings_; }
  const Clock& clock() const { return clock_; }
  // Whether the housekeeper's thread advances idle comms; see comm_progress.h.
  bool progresses_idle_comms() const { return progresses_idle_comms_; }
  const std::vector<std::string>& notes() const { return notes_; }  // skipped NICs, and why

  Outages& outages() { return outages_; }
  // Whether nobody has asked for this key before: for messages that one line says for all links.
  bool first_time(const std::string& key);
  // Adds the counters of a closed channel. report() does not count open channels.
  void fold(const Rail& rail, const RailTotals& totals);
  std::vector<RailReport> report() const;
  std::vector<InterfaceReport> interfaces() const;  // asks the kernel

 private:
  Devices(const Settings& settings, const Clock& clock) : settings_(settings), clock_(clock) {}
  void adopt(std::vector<std::unique_ptr<Rail>> rails);
  int add_device(const std::vector<Rail*>& rails, std::vector<int> members, std::string reason);

  const Settings settings_;
  const Clock& clock_;
  bool progresses_idle_comms_ = true;
  std::vector<std::string> notes_;
  std::vector<std::unique_ptr<Rail>> rails_;
  std::map<unsigned, InterfaceReport> interfaces_;  // by index; as they were at the start
  Outages outages_;
  mutable std::mutex mutex_;        // guards the members below, which change after opening
  std::deque<Device> devices_;      // a deque: devices never move
  std::vector<RailTotals> totals_;  // by position in rails_
  std::set<std::string> said_;      // of first_time(), kMostSaid at most
};

}  // namespace slime
