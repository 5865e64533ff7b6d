// Which transports there are, what each finds on this host, and why others find nothing.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "settings/settings.h"
#include "transports/registry.h"

namespace slime::info {

struct TransportsReport {
  std::string variable;  // NCCL_SLIME_TRANSPORTS as it is set
  std::vector<TransportState> states;

  // One that is wanted has rails, and all that are wanted exist.
  bool usable() const;
};

TransportsReport report_transports(const Settings& settings);
void print_transports(const TransportsReport& report, FILE* out);
nlohmann::json transports_json(const TransportsReport& report);

}  // namespace slime::info
