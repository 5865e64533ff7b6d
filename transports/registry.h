// The list of backends: the one place that names them all. The engine opens rails here.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "settings/settings.h"
#include "transports/rail.h"

namespace slime {

// Rails of all backends that settings.transports names, by PCI address, virtual ones last, then
// by name: NCCL wants the same order in every table and at every start. Rails that NCCL cannot tell
// apart are warned of. No rail at all is no error. What was skipped, and why, is appended to
// `notes` (may be nullptr).
Result<std::vector<std::unique_ptr<Rail>>> open_rails(const Settings& settings,
                                                      std::vector<std::string>* notes);

struct TransportState {
  std::string name;
  bool exists = true;                   // false: a word that cannot stand in settings.transports
  bool wanted = false;                  // settings.transports names it, or it is what "auto" takes
  std::vector<std::string> rails = {};  // their names
  std::string reason = {};              // why there is none
};

// What each backend finds on this host, and the names in settings.transports that are of none. All
// backends are opened for it, and closed.
std::vector<TransportState> survey_transports(const Settings& settings);

}  // namespace slime
