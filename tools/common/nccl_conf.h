// nccl.conf: files of KEY=VALUE lines that NCCL reads before it loads a plugin.
#pragma once

#include <map>
#include <string>

namespace slime::tools {

// Variable -> the file that it comes from.
using ConfSources = std::map<std::string, std::string>;
// Sets, as NCCL does, what the environment does not have: from $NCCL_CONF_FILE (before NCCL 2.23
// ~/.nccl.conf in any case), then from /etc/nccl.conf. Call it before threads begin.
ConfSources apply_nccl_conf();

}  // namespace slime::tools
