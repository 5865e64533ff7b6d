// Whether a job may be, and how much of the switch it gets. Pure.
#pragma once

#include "switch/core/driver.h"
#include "switch/protocol/control.h"

namespace slime::net {

struct TenantQuota {
  uint32_t max_jobs = 0;
  uint64_t max_slot_bytes = 0;
};

// What is taken already.
struct Usage {
  uint32_t jobs = 0;
  uint64_t slot_bytes = 0;
};

struct Grant {
  uint32_t slots = 0;
  uint32_t lanes = 0;
  uint32_t formats = 0;
  uint64_t slot_bytes = 0;
};

using Admission = tl::expected<Grant, control::Refused>;

// Refuses children that no switch could serve; rail by rail, as in CreateJob.
tl::expected<void, control::Refused> check_children(const std::vector<SocketAddress>& children,
                                                    uint32_t rails,
                                                    const SocketAddress& switch_address);

// `all` and `own`: what all jobs and those of the tenant hold.
Admission admit(const control::CreateJob& wanted, const SwitchShape& shape,
                const TenantQuota& quota, const Usage& all, const Usage& own);

}  // namespace slime::net
