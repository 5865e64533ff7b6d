// The daemon: switch, controller, control channel and metrics, and the loop that turns them.
#pragma once

#include "tools/switchd/config.h"

namespace slime::switchd {

// Until SIGTERM or SIGINT; SIGHUP reads keys and quotas again, and `path` before (empty: there is
// no file). An error: it could not start.
Result<void> serve(const Config& config, const std::string& path);

// Log lines go to standard error; so many in a second and no more, because strangers cause some.
void log_to_stderr();

}  // namespace slime::switchd
