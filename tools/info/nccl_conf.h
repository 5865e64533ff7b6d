// nccl.conf: files of KEY=VALUE lines that NCCL puts into the environment before it reads it.
#pragma once

#include <map>
#include <string>

namespace slime::info {

// Sets, as NCCL does, what the environment does not have: from $NCCL_CONF_FILE (before NCCL 2.23
// ~/.nccl.conf in any case), then from /etc/nccl.conf. Returns variable -> file for those set.
std::map<std::string, std::string> apply_nccl_conf();

}  // namespace slime::info
