// What a leader asks its switch for, and whether the answer will do.
#pragma once

#include <span>

#include "collnet/comm/comm_config.h"

namespace slime {

struct JobShape {
  uint32_t slots = 0, lanes = 0;
  uint32_t formats = sap::kKnownFormats;  // a bit each
};

// A job at switch `index` of the list, over these rails of the communicator's port, for the ranks
// below that switch. On a tree this is the part of one leaf; elsewhere only `part` of it counts.
control::JoinTree job_request(const CommConfig& config, uint32_t index,
                              std::span<const uint32_t> rails, const JobShape& wanted,
                              const JobShape& least);
// Asks for `wanted`, or as little as a worker can do with, and waits for the answer.
Result<control::JobGrant> request_job(SwitchClient& client, const CommConfig& config,
                                      uint32_t index, std::span<const uint32_t> rails,
                                      const JobShape& wanted, uint64_t timeout_ns);

}  // namespace slime
