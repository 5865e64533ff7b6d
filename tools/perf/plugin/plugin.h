// One loaded plugin library with the tables that NCCL would choose from it.
//
// States: loaded -> initialised -> finalised; finalize() may be called in each, and undoes what
// init() has done. Thread: the main thread.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "tools/common/net_table.h"
#include "tools/perf/words.h"

namespace slime::perf {

using tools::Code;
using tools::CollTable;
using tools::NetTable;

// What a listener gives to those who will connect.
using HandleBytes = std::array<std::byte, nccl::kHandleMaxBytes>;

// The network devices that this rank uses.
struct Devices {
  std::vector<int> indices;
  nlohmann::json described = nlohmann::json::array();
};

class Plugin {
 public:
  // `value` as NCCL_NET_PLUGIN; empty: that variable, else libnet-slime.so in ../lib.
  Result<void> load(const std::string& value, int max_api);
  // Both tables are initialised where CollNet is to be used, as in NCCL.
  Result<void> init(Algorithm algorithm, uint64_t comm_id);
  Result<void> finalize();  // what was initialised; the first error
  // `wanted`: indices; empty: all that the plugin has.
  Result<Devices> choose_devices(const std::vector<int>& wanted) const;
  // A device of the CollNet, or why NCCL would not use it.
  Result<tools::DeviceProperties> coll_device(int device) const;

  const NetTable* net() const { return &net_; }
  const CollTable* coll() const { return &coll_; }
  const std::string& path() const { return path_; }

 private:
  NetTable net_;
  CollTable coll_;  // version 0: there is none
  std::string path_;
  int max_api_ = 0;
  bool net_ready_ = false, coll_ready_ = false;
};

// Fails where NCCL would not use CollNet for one of them, with what it supports.
Result<void> check_support(const CollTable& coll, const std::vector<DataType>& types,
                           const std::vector<RedOp>& ops);

// What a call returned, with the last warning that the plugin has logged.
std::string outcome_of(Code code);
Error call_error(Status status, const std::string& call, Code code);

// The logger for plugins (plugin_log.cc): NCCL_DEBUG=WARN, the default here, INFO, TRACE or NONE,
// to stderr. Any thread.
void plugin_log(nccl::LogLevel level, unsigned long flags, const char* file, int line,
                const char* format, ...);
void set_log_rank(int rank);
bool warnings_are_shown();
std::string why_no_devices();  // from the plugin's log; empty: nothing is there
std::string last_warning();    // what NCCL would return from ncclGetLastError

}  // namespace slime::perf
