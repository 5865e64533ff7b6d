// The settings that a user makes in the environment: the rows of settings.def.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
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

// Maps variable names to values. Tests make their own; all other code uses that of the process.
using Environment = std::map<std::string, std::string>;
Environment process_environment();  // the variables whose names begin with NCCL

// Parses the environment. A value that is malformed or out of range is an error, which names the
// variable, the value, and the values that are accepted. Such a value of a fallback is no error,
// unless the setting is a text: it counts as not set, or as the largest value if it is a count that
// is too large, and `warnings` (may be nullptr) names it. An empty value counts as not set. Unknown
// NCCL_SLIME_* variables go to `warnings`, each with the nearest name that exists.
Result<Settings> parse_settings(const Environment& environment,
                                std::vector<std::string>* warnings = nullptr);

// What this host cannot do of what the settings ask: a key file that cannot be used, a congestion
// control that the kernel does not have. Each sentence names the variable, the value and what is
// accepted. Reads files and asks the kernel.
std::vector<std::string> unusable_here(const Settings& settings);

// For messages: the variable that the value of setting `name` (NCCL_SLIME_X) comes from, which may
// be its fallback; `name` itself if neither is set.
std::string variable_of(const std::string& name,
                        const Environment& environment = process_environment());

// The environment, with settings that a program gives as "ifname=eth0; peer_timeout=5".
Result<Environment> with_options(Environment environment, std::string_view options);

// The same text for a user of the library, who knows a setting by the name of its field in
// Settings: "raise NCCL_SLIME_PEER_TIMEOUT" becomes "raise peer_timeout".
std::string with_option_names(std::string_view text);

struct SettingRow {
  std::string name;           // NCCL_SLIME_X
  std::string value;          // as a user would write it: "64K"
  std::string default_value;  // in the same form
  std::string source;         // "default", the variable it came from, or "program"
  std::string type;           // "bool", "int", "bytes", "seconds", "text", "choice"
  std::string unit;           // "bytes", "seconds", ...; empty: none
  std::string range;          // the accepted values, in words
  std::string fallback;       // variable used when `name` is not set; empty: none
  std::string help;
};

// One row per setting, in the table's order. If a value does not come from `environment` or the
// default, its source is "program".
std::vector<SettingRow> describe(const Settings& settings, const Environment& environment);

// The whole text of docs/configuration.md.
std::string render_settings_markdown();

}  // namespace slime
