// The report for people, and for programs.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/info/report.h"

namespace slime::info {

void print_text(const Report& report, bool long_settings, FILE* out);
nlohmann::json to_json(const Report& report);

// Parts of the text.
void print_loading(const LoadingReport& loading, FILE* out);
void print_devices(const DevicesReport& devices, FILE* out);
void print_settings(const SettingsReport& settings, bool with_help, FILE* out);

const char* outcome_words(Outcome outcome);

}  // namespace slime::info
