// The daemon: switch, controller, control channel and metrics, and the loop that turns them.
//
// Thread rules: one thread, that of main(). Only the software switch has others, one per shard, and
// they touch nothing here but the log.
#pragma once

#include <memory>

#include "switch/core/driver.h"
#include "tools/switchd/config.h"

namespace slime::switchd {

// Until SIGTERM or SIGINT; SIGHUP reads keys and quotas again, and `path` before (empty: there is
// no file). An error: it could not start.
Result<void> serve(const Config& config, const std::string& path);

// The switch that the daemon controls. make_driver.cc alone knows which there are.
Result<std::unique_ptr<net::SwitchDriver>> make_driver(const Config& config);

// Log lines go to standard error (log.cc); so many in a second and no more, because strangers cause
// some.
void log_to_stderr();

}  // namespace slime::switchd
