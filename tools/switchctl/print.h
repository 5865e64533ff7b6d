// A switch's report as tables.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>

namespace slime::switchctl {

// The report is the switch's: what is missing in it or odd is shown as "-", never trusted.
void print_show(const nlohmann::ordered_json& report, FILE* out);
void print_stats(const nlohmann::ordered_json& report, FILE* out);

}  // namespace slime::switchctl
