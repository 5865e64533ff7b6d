// The interface between controller and switch: the software switch, or a program in P4.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "switch/core/job.h"

namespace slime::net {

struct SwitchShape {
  SocketAddress address;    // where workers send; the port is that of shard 0
  uint32_t shards = 1;      // ports from there on
  uint32_t max_lanes = 0;   // 32-bit words per packet
  uint64_t slot_bytes = 0;  // memory for slots, all jobs together
  uint32_t formats = 0;     // a bit each
};

// A counter that the device keeps for all jobs together. Both texts last as long as the process.
// The name has the characters [a-z0-9_]; it is a part of names in reports and metrics.
struct DeviceCounter {
  const char* name = "";
  const char* help = "";
  uint64_t value = 0;
};

// A device as the controller sees it. The controller allots job numbers: it adds no number that the
// device still has. After a failure of remove_job() it repeats the call until it succeeds, so a
// driver keeps what it could not remove.
//
// States: those of the implementation.
// Thread rules: one thread, the controller's. Each call takes effect before it returns. It must not
// wait long for a device (see DeviceThread): the control channel waits meanwhile.
class SwitchDriver {
 public:
  virtual ~SwitchDriver() = default;
  virtual SwitchShape shape() const = 0;
  virtual Result<void> add_job(const JobSpec& spec) = 0;
  virtual Result<void> remove_job(uint16_t job) = 0;
  virtual Result<void> fence(uint16_t job, uint8_t generation, uint32_t token) = 0;
  virtual Result<JobTotals> totals(uint16_t job) const = 0;  // over all shards
  // The other counters of its data path. Each device has its own; names are the same every time.
  virtual std::vector<DeviceCounter> counters() const { return {}; }
};

}  // namespace slime::net
