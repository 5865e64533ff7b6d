// NCCL's logger as the one sink of slime::log.
#pragma once

#include "plugin/abi/types.h"

namespace slime::plugin {

// nullptr: silence. The last caller of init wins; all of a process's NCCL share one log anyway.
void set_logger(nccl::Logger logger);

}  // namespace slime::plugin
