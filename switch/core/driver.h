// What the controller asks of any switch: the software switch here, and hardware that joins later.
#pragma once

#include <slime/result.h>

#include <string>

#include "switch/core/job.h"

namespace slime::net {

struct SwitchShape {
  SocketAddress address;    // where workers send; the port is that of shard 0
  uint32_t shards = 1;      // ports from there on
  uint32_t max_lanes = 0;   // 32-bit words per packet
  uint64_t slot_bytes = 0;  // memory for slots, all jobs together
  uint32_t formats = 0;     // a bit each
};

class SwitchDriver {
 public:
  virtual ~SwitchDriver() = default;
  virtual SwitchShape shape() const = 0;
  // Each takes effect before it returns. Thread rules: one thread, the controller's.
  virtual Result<void> add_job(const JobSpec& spec) = 0;
  virtual Result<void> remove_job(uint16_t job) = 0;
  virtual Result<void> fence(uint16_t job, uint8_t generation) = 0;
  virtual Result<JobTotals> totals(uint16_t job) const = 0;  // over all shards
};

}  // namespace slime::net
