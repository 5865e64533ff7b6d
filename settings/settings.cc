// Translates the environment into Settings, and warns of every name that looks like a typing error.
#include "settings/settings.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>
#include <type_traits>

#include "base/text.h"
#include "settings/table.h"

namespace slime {
namespace {

constexpr size_t kMaxShown = 64;  // of a value or a name in a message

struct Found {
  const char* variable = nullptr;  // nullptr: neither the setting nor its fallback is set
  std::string text;                // the value, if one is used
  std::string refused;             // a sentence about a value of the fallback that is not used
};

std::string shown(std::string_view text) { return displayed(text, kMaxShown); }

std::string refusal(const SettingSpec& spec, const char* variable, const std::string& text) {
  return std::string(variable) + "=\"" + shown(text) + "\" is not accepted: expected " +
         accepted_values(spec);
}

// A setting with a unit counts something; other numbers may be codes.
bool is_too_large_a_count(const SettingSpec& spec, const std::string& text) {
  if (spec.type != SettingType::kInt || *spec.unit == '\0') return false;
  SettingSpec unlimited = spec;
  unlimited.maximum = std::numeric_limits<int>::max();
  return is_accepted(unlimited, text);
}

// NCCL accepts numbers for its own variables that have no meaning here, such as -1 for "not set".
// Such a number must not make the plugin fail a job that works with NCCL alone. So a count that is
// too large becomes the largest one, and any other value that is refused counts as not set.
Found from_fallback(const SettingSpec& spec, const std::string& text) {
  if (spec.type == SettingType::kText || is_accepted(spec, text)) return {spec.fallback, text, ""};
  const std::string refused = refusal(spec, spec.fallback, text);
  if (!is_too_large_a_count(spec, text)) return {nullptr, "", refused};
  return {spec.fallback, std::to_string(spec.maximum), refused};
}

Found look_up(const SettingSpec& spec, const Environment& environment) {
  // NCCL keeps the spaces that follow a value in nccl.conf.
  const auto find = [&](const char* variable) {
    const auto entry = environment.find(variable);
    return entry == environment.end() ? std::string() : std::string(trimmed(entry->second));
  };
  if (std::string text = find(spec.name); !text.empty()) return {spec.name, std::move(text), ""};
  if (const std::string text = find(spec.fallback); !text.empty()) return from_fallback(spec, text);
  return {};
}

const char* nearest_name(std::string_view name) {
  const auto distance = [&](const SettingSpec& spec) {
    return edit_distance(name.substr(0, kMaxShown), spec.name);
  };
  return std::ranges::min_element(kSettingSpecs, {}, distance)->name;
}

bool is_setting(std::string_view name) {
  return std::ranges::any_of(kSettingSpecs,
                             [&](const SettingSpec& spec) { return name == spec.name; });
}

void warn_of_unknown(const Environment& environment, std::vector<std::string>* warnings) {
  for (auto entry = environment.lower_bound(std::string(kSettingPrefix));
       entry != environment.end() && entry->first.starts_with(kSettingPrefix); ++entry) {
    if (is_setting(entry->first)) continue;
    warnings->push_back(shown(entry->first) + " is no setting and has no effect; the nearest is " +
                        nearest_name(entry->first));
  }
}

template <typename Field>
std::string source_of(const SettingSpec& spec, const Field& field, bool is_default,
                      const Environment& environment) {
  const Found found = look_up(spec, environment);
  if (found.variable == nullptr) return is_default ? "default" : "program";
  Field expected{};
  const bool accounts_for_it = parse_value(spec, found.text, &expected) && expected == field;
  return accounts_for_it ? found.variable : "program";
}

}  // namespace

Environment process_environment() {
  Environment environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const char* equals = strchr(*entry, '=');
    if (equals == nullptr || strncmp(*entry, "NCCL", 4) != 0) continue;
    // emplace keeps the first of a repeated name, as getenv(3) does.
    environment.emplace(std::string(*entry, static_cast<size_t>(equals - *entry)), equals + 1);
  }
  return environment;
}

Result<Settings> parse_settings(const Environment& environment,
                                std::vector<std::string>* warnings) {
  Settings settings;
  std::optional<Error> error;
  std::vector<std::string> refused;
  for_each_setting(settings, [&](const SettingSpec& spec, auto& field) {
    const Found found = look_up(spec, environment);
    if (found.variable != nullptr && !parse_value(spec, found.text, &field) && !error) {
      error = Error{Status::kConfig, 0, refusal(spec, found.variable, found.text)};
    }
    if (!found.refused.empty()) {
      refused.push_back(found.refused + "; " + format_value(spec, field) + " is used");
    }
  });
  if (error) return fail(std::move(*error));
  if (warnings != nullptr) {
    std::ranges::move(refused, std::back_inserter(*warnings));
    warn_of_unknown(environment, warnings);
  }
  return settings;
}

std::string variable_of(const std::string& name, const Environment& environment) {
  for (const SettingSpec& spec : kSettingSpecs) {
    const Found found = name == spec.name ? look_up(spec, environment) : Found{};
    if (found.variable != nullptr) return found.variable;
  }
  return name;
}

std::string with_option_names(std::string_view text) {
  constexpr std::string_view kOfNames = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  std::string result;
  while (!text.empty()) {
    const size_t length = std::min(text.find_first_not_of(kOfNames), text.size());
    const std::string_view word = text.substr(0, std::max<size_t>(length, 1));
    const auto* const spec = std::ranges::find_if(kSettingSpecs, [&](const SettingSpec& each) {
      return word == each.name || word == each.fallback;
    });
    result += spec != std::end(kSettingSpecs) ? spec->field : word;
    text.remove_prefix(word.size());
  }
  return result;
}

std::vector<SettingRow> describe(const Settings& settings, const Environment& environment) {
  std::vector<std::string> defaults;
  for_each_setting(Settings(), [&](const SettingSpec& spec, const auto& field) {
    defaults.push_back(format_value(spec, field));
  });
  std::vector<SettingRow> rows;
  for_each_setting(settings, [&](const SettingSpec& spec, const auto& field) {
    SettingRow row;
    row.name = spec.name;
    row.value = format_value(spec, field);
    row.default_value = defaults[rows.size()];
    row.source = source_of(spec, field, row.value == row.default_value, environment);
    row.type = type_name(spec.type);
    const bool is_text = spec.type == SettingType::kChoice || spec.type == SettingType::kText;
    row.unit = is_text ? "" : spec.unit;
    row.range = accepted_values(spec);
    row.fallback = spec.fallback;
    row.help = spec.help;
    rows.push_back(std::move(row));
  });
  return rows;
}

}  // namespace slime
