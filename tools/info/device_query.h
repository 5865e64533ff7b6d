// A plugin asked as NCCL asks it: init, devices, getProperties, finalize.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace slime::info {

struct DeviceQuery {
  std::string library;                               // what dlopen was given
  int table = 0;                                     // n of ncclNetPlugin_v<n>
  std::string error;                                 // empty: the plugin answered
  nlohmann::json devices = nlohmann::json::array();  // one object per device
  std::vector<std::string> warnings;                 // what the plugin logged
  std::vector<std::string> messages;
  nlohmann::json changes = nlohmann::json::object();  // NCCL variables that init set

  size_t count() const { return devices.size(); }
};

// In a process of its own. `table` is one of 6 ... 12.
DeviceQuery query_devices(const std::string& library, int table);

inline bool can_query(int table) { return table >= 6 && table <= 12; }

}  // namespace slime::info
