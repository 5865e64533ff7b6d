// One loaded plugin library with the tables that NCCL would choose from it.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "tools/perf/coll_api.h"
#include "tools/perf/net_api.h"

namespace slime::perf {

class Plugin {
 public:
  // `value` as NCCL_NET_PLUGIN; empty: that variable, else libnet-slime.so in ../lib.
  Result<void> load(const std::string& value, int max_api);

  // Both tables are initialised where CollNet is to be used, as in NCCL.
  Result<void> init(Algorithm algorithm, uint64_t comm_id);
  Result<void> finalize();  // what was initialised; the first error

  // A device of the CollNet, or why NCCL would not use it.
  Result<CollProperties> coll_device(int device) const;

  NetApi* net() const { return net_.get(); }
  CollApi* coll() const { return coll_.get(); }
  const std::string& path() const { return path_; }

 private:
  std::unique_ptr<NetApi> net_;
  std::unique_ptr<CollApi> coll_;
  std::string path_;
  int max_api_ = 0;
  bool net_ready_ = false, coll_ready_ = false;
};

// The plugin's call that failed, with what the plugin said of it.
Error call_error(Status status, const std::string& call, nccl::ResultCode code);

}  // namespace slime::perf
