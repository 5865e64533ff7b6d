// What a worker says when something is wrong.
#pragma once

#include <string>

#include "base/error.h"
#include "collnet/worker/job_route.h"
#include "collnet/worker/retransmission.h"

namespace slime {

// A result that is not what the contributions come to, for the `times`-th time in this round.
Error damaged_error(const sap::Header& result, uint32_t times);
Error reject_error(const sap::Header& reject, uint32_t code);
// No answer from whoever serves the slot (`by`).
Error unanswered_error(const JobRoute& route, const Destination& by, const RoundTimer& timer,
                       uint64_t now_ns);
// No contribution from the ranks `missing`.
Error overdue_error(const std::string& missing, const RoundTimer& timer, uint64_t now_ns);

}  // namespace slime
