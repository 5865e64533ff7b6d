// What a libfabric channel says when it fails: what was under way, the exact code, what to try. The
// channel puts in front where that was.
#pragma once

#include <cstdint>
#include <string>

#include "transports/fabric/domain.h"
#include "transports/rail.h"

namespace slime::fabric {

class FabricRail;

// `description`: Endpoint::describe(), `code`: of libfabric, positive.
Error completion_error(const std::string& description, int code, uint64_t undelivered_works);
Error write_error(const Domain& domain, long code, const Work& work);  // fi_writemsg refused it
Error work_error(const FabricRail& rail, const Work& work);            // Sender::is_valid() did
Error refusal_error(const Domain& domain, uint64_t refused);           // RefusalWatch

}  // namespace slime::fabric
