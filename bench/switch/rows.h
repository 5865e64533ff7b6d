// The two measurements, and what both need: a switch and an echo under the same load.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "bench/switch/children.h"
#include "bench/switch/echo.h"
#include "switch/softswitch/softswitch.h"

namespace slime::bench {

inline constexpr double kAimRate = 0.7, kAimLatency = 1.5;

struct Options {
  unsigned rounds = 9;
  unsigned thousand_packets = 60;  // a turn
  bool segmentation = true;
  const char* json = nullptr;
};

// A switch and an echo, and the same load for each.
struct Pair {
  std::unique_ptr<net::SoftSwitch> soft;
  std::unique_ptr<Echo> echo;
  std::unique_ptr<Children> to_switch, to_echo;
};

// All return false after a message.
bool open_pair(const Options& options, const Load& load, const Load& echo_load,
               uint32_t busy_poll_us, Pair* pair);
bool run_rates(const Options& options, nlohmann::json* records);
bool run_latencies(const Options& options, nlohmann::json* records);

}  // namespace slime::bench
