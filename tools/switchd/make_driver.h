// The switch that the daemon controls. The one place that knows which.
#pragma once

#include <memory>

#include "switch/core/driver.h"
#include "tools/switchd/config.h"

namespace slime::switchd {

Result<std::unique_ptr<net::SwitchDriver>> make_driver(const Config& config);

}  // namespace slime::switchd
