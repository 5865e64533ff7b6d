// One attempt of NCCL to load a plugin, in words.
#pragma once

#include <string>

#include "tools/info/resolve.h"

namespace slime::info {

std::string shown_name(const Attempt& attempt);
std::string short_verdict(const Attempt& attempt, const Library& library);

// A sentence that says why this attempt came to nothing; empty for one that did not.
std::string words_for(const Attempt& attempt, const Request& request);

// What is wrong with the value of NCCL_NET_PLUGIN as such, before any file is looked at.
std::string words_for_value(const Era& era, const Request& request);

}  // namespace slime::info
