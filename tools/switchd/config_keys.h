// The keys of the configuration: their names, defaults and meanings, and where their values go.
// Constant tables and pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tools/switchd/config.h"

namespace slime::switchd {

// What a key accepts, as in "is not a number from 1 to 16". Empty: it has taken the value.
using Mismatch = std::string;

struct Key {
  const char* name;
  const char* value;  // the default
  const char* help;
  Mismatch (*take)(const std::string& text, Config* config);
};
std::span<const Key> keys();  // in the order in which they are printed and read

// A section whose keys are names that the user gives, with two keys below each.
struct NamedSection {
  std::string_view name;  // with the point
  const char* keys[2];
  const char* help;
  bool (*is_name)(std::string_view name);
  Mismatch (*take)(const std::string& name, bool first_key, const std::string& text,
                   Config* config);
};
std::span<const NamedSection> named_sections();

// A key of such a section, "tenants.NAME.KEY"; NAME may have points.
struct NamedKey {
  const NamedSection* section;
  std::string name, key;
  bool is_first() const { return key == section->keys[0]; }
  bool is_known() const { return is_first() || key == section->keys[1]; }
};

std::optional<NamedKey> named_key(const std::string& text);

// Of either kind, by their names in the file.
bool is_key(const std::string& name);
bool is_section(const std::string& name);  // "data", "tenants.physics"
std::string nearest_key(const std::string& name);

}  // namespace slime::switchd
