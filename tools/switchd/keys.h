// The keys that the configuration names, read from their files.
#pragma once

#include "switch/controller/connection.h"
#include "tools/switchd/config.h"

namespace slime::switchd {

// Errors name the key of the configuration, and the file.
Result<net::KeyRing> load_keys(const Config& config);
Result<SecretKey> load_parent_key(const Config& config);

}  // namespace slime::switchd
