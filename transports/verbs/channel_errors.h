// What a verbs channel says when it fails: what was under way, the exact status, what to try. The
// channel puts in front where that was.
#pragma once

#include <cstdint>

#include "transports/rail.h"
#include "transports/verbs/nic.h"

namespace slime::verbs {

Error completion_error(const Nic& nic, const ibv_wc& completion, uint64_t undelivered_works);
Error work_error(const RailCaps& rail, const Work& work);  // Lanes::chain() refused it

}  // namespace slime::verbs
