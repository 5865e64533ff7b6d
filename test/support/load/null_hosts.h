// Two hosts of this program whose rails are null rails.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "devices/devices.h"
#include "test/support/load/null_rail.h"

namespace slime::test {

class NullHosts {
 public:
  NullHosts(size_t rails, uint64_t max_message_bytes)
      : from(make(rails, max_message_bytes)), to(make(rails, max_message_bytes)) {}

 private:
  std::unique_ptr<Devices> make(size_t rail_count, uint64_t max_message_bytes) {
    std::vector<std::unique_ptr<Rail>> rails;
    for (size_t i = 0; i < rail_count; ++i) {
      RailCaps caps;
      caps.name = "null." + std::to_string(i);
      caps.transport = "null";
      caps.speed_mbps = 100'000;
      caps.max_message_bytes = max_message_bytes;
      caps.arrives_unpolled = true;
      rails.push_back(std::make_unique<NullRail>(network_, caps));
    }
    return Devices::of_rails(std::move(rails), Settings(), SteadyClock::instance());
  }

  NullNetwork network_;

 public:
  const std::unique_ptr<Devices> from, to;
};

}  // namespace slime::test
