// The network devices that this rank uses.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "tools/perf/plugin.h"
#include "tools/perf/tuning.h"

namespace slime::perf {

struct DeviceChoice {
  std::vector<int> indices;
  NetSpeed speed;  // of all of them together
  nlohmann::json described = nlohmann::json::array();
};

// `wanted`: their indices; empty: all that the plugin has.
Result<DeviceChoice> choose_devices(const Plugin& plugin, const std::vector<int>& wanted);

// Of what is described, in its order.
nlohmann::json names_of(const nlohmann::json& described);

}  // namespace slime::perf
