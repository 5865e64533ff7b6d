// Which ports of this host verbs drives.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "settings/settings.h"
#include "transports/rail.h"
#include "transports/verbs/symbols.h"

namespace slime::verbs {

// All verbs rails of this host. Why the backend or a port is left out goes to `notes`; what is
// amiss with a port that is used is a warning in the log.
Result<std::vector<std::unique_ptr<Rail>>> open_verbs_rails(const Settings& settings,
                                                            std::vector<std::string>* notes);
// The same of other NICs than libibverbs knows.
Result<std::vector<std::unique_ptr<Rail>>> open_verbs_rails(const Symbols& verbs,
                                                            const std::string& sysfs_root,
                                                            const Settings& settings,
                                                            std::vector<std::string>* notes);

}  // namespace slime::verbs
