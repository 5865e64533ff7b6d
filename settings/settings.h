// What the user may set, through the environment: the rows of settings.def.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"

namespace slime {

namespace setting {
using Bool = bool;
using Int = int;
using Bytes = uint64_t;
using Seconds = double;
using Text = std::string;
using Choice = std::string;
}  // namespace setting

struct Settings {
#define SLIME_SETTING(type, field, name, value, ...) setting::type field = value;
#include "settings/settings.def"
};

constexpr uint64_t seconds_to_ns(setting::Seconds seconds) {
  return static_cast<uint64_t>(seconds * 1e9);
}

// Variable name -> value. Tests make their own; everybody else asks for the process's.
using Environment = std::map<std::string, std::string>;
Environment process_environment();  // the variables whose names begin with NCCL

// A value that is malformed or out of range is an error that names variable, value and what is
// accepted. Of a fallback such a value that is no text counts as not set, or as the largest if it
// is a count that is too large; `warnings` (may be nullptr) names it. An empty value counts as not
// set. Unknown NCCL_SLIME_* variables go to `warnings`, each with the nearest name that exists.
Result<Settings> parse_settings(const Environment& environment,
                                std::vector<std::string>* warnings = nullptr);

// For messages: the variable that setting `name` (NCCL_SLIME_X) has its value from, which may be
// its fallback; `name` itself where none is set.
std::string variable_of(const std::string& name,
                        const Environment& environment = process_environment());

struct SettingRow {
  std::string name;           // NCCL_SLIME_X
  std::string value;          // as one would write it: "64K"
  std::string default_value;  // the same
  std::string source;         // "default", the variable it came from, or "program"
  std::string type;           // "bool", "int", "bytes", "seconds", "text", "choice"
  std::string unit;           // "bytes", "seconds", ...; empty: none
  std::string range;          // what is accepted, in words
  std::string fallback;       // variable used when `name` is not set; empty: none
  std::string help;
};

// One row per setting, in the table's order. A value that `environment` does not account for was
// set by the program.
std::vector<SettingRow> describe(const Settings& settings, const Environment& environment);

// docs/configuration.md, whole.
std::string render_settings_markdown();

}  // namespace slime
