// settings.def as data, for the parser and the reports.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "settings/settings.h"

namespace slime {

enum class SettingType : uint8_t { kBool, kInt, kBytes, kSeconds, kText, kChoice };

struct SettingSpec {
  SettingType type;
  const char* field;  // of Settings
  const char* name;   // with the prefix
  int64_t minimum, maximum, multiple;
  const char* unit;
  const char* fallback;
  const char* help;
};

inline constexpr std::string_view kSettingPrefix = "NCCL_SLIME_";

inline constexpr SettingSpec kSettingSpecs[] = {
#define SLIME_SETTING(type, field, name, value, minimum, maximum, multiple, unit, fallback, help) \
  {SettingType::k##type,                                                                          \
   #field,                                                                                        \
   "NCCL_SLIME_" #name,                                                                           \
   minimum,                                                                                       \
   maximum,                                                                                       \
   multiple,                                                                                      \
   unit,                                                                                          \
   fallback,                                                                                      \
   help},
#include "settings/settings.def"
};

// visit(spec, field) for every row, in order.
template <typename AnySettings, typename Visit>
void for_each_setting(AnySettings&& settings, Visit visit) {
  size_t row = 0;
#define SLIME_SETTING(type, field, ...) visit(kSettingSpecs[row++], settings.field);
#include "settings/settings.def"
}

// Translate a value to text, and back. False: the text is malformed, out of range, or not the
// required multiple.
std::string format_value(const SettingSpec& spec, bool value);
std::string format_value(const SettingSpec& spec, int value);
std::string format_value(const SettingSpec& spec, uint64_t value);
std::string format_value(const SettingSpec& spec, double value);
std::string format_value(const SettingSpec& spec, const std::string& value);

bool parse_value(const SettingSpec& spec, std::string_view text, bool* value);
bool parse_value(const SettingSpec& spec, std::string_view text, int* value);
bool parse_value(const SettingSpec& spec, std::string_view text, uint64_t* value);
bool parse_value(const SettingSpec& spec, std::string_view text, double* value);
bool parse_value(const SettingSpec& spec, std::string_view text, std::string* value);

bool is_accepted(const SettingSpec& spec, std::string_view text);
// "a whole number from 1 to 16"
std::string accepted_values(const SettingSpec& spec);
const char* type_name(SettingType type);

}  // namespace slime
