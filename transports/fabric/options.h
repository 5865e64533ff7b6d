// What an endpoint is asked for before it is enabled (fi_endpoint(3), fi_efa(7)).
#pragma once

#include <rdma/fi_endpoint.h>

#include "transports/fabric/domain.h"

namespace slime::fabric {

// What an endpoint turned out to do.
struct EndpointCaps {
  bool lines_in_order = false;  // RailCaps::lines_in_order
};

// An error where the provider refuses what a rail cannot do without. What it does not know yet is
// left as it is.
Result<EndpointCaps> set_options(const Domain& domain, fid_ep* endpoint);

}  // namespace slime::fabric
