// A switch's report as tables.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>

namespace slime::switchctl {

// The report comes from the switch, perhaps of another release: what is missing in it, or of
// another kind than expected, is shown as "-".
void print_show(const nlohmann::ordered_json& report, FILE* out);
void print_stats(const nlohmann::ordered_json& report, FILE* out);

}  // namespace slime::switchctl
