// The daemon: switch, controller, control channel and metrics, and the loop that runs them.
//
// Thread rules: one thread, that of main(). Only the switches have others, the software switch one
// per shard and a switch in P4 one for its device; these use nothing of this but the log.
#pragma once

#include <memory>

#include "switch/core/driver.h"
#include "tools/switchd/config.h"

namespace slime::switchd {

// Runs until SIGTERM or SIGINT. SIGHUP reads the configuration file `path` again (empty: there is
// none), then keys and quotas. An error: the daemon could not start or go on.
Result<void> serve(const Config& config, const std::string& path);

// Opens the switch that the daemon controls (make_driver.cc).
Result<std::unique_ptr<net::SwitchDriver>> make_driver(const Config& config);

// Sends log lines to standard error (log.cc), at most so many a second, because strangers can cause
// lines.
void log_to_stderr();

}  // namespace slime::switchd
