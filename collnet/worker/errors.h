// The errors of a worker.
#pragma once

#include <string>

#include "base/error.h"
#include "collnet/worker/job_route.h"
#include "collnet/worker/retransmission.h"

namespace slime {

// The check of a result has failed, for the `times`-th time in this round.
Error damaged_error(const sap::Header& result, uint32_t times);
Error reject_error(const sap::Header& reject, uint32_t code);
// The destination `by`, a shard or a rank, has not answered a slot's contribution.
Error unanswered_error(const JobRoute& route, const Destination& by, const RoundTimer& timer,
                       uint64_t now_ns);
// The ranks `missing` have not contributed in time.
Error overdue_error(const std::string& missing, const RoundTimer& timer, uint64_t now_ns);

}  // namespace slime
