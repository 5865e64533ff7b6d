// The keys of the configuration: their names, defaults and meanings, and where their values go. One
// table serves the reader of the file, the checks and --print-config.
// Constant tables and pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tools/switchd/config.h"

namespace slime::switchd {

// What a key accepts, as in "is not a number from 1 to 16". Empty: the value is stored.
using Mismatch = std::string;

// In "tenants.*.max_jobs" the '*' stands for a name that the user gives.
struct Key {
  std::string_view name;
  const char* value;  // the default
  const char* help;   // of keys with a '*': of their section, at the first of them
  Mismatch (*take)(const std::string& text, const std::string& star, Config* config);
  bool (*is_name)(const std::string& star) = nullptr;

  bool has_star() const { return is_name != nullptr; }
  std::string_view section() const { return name.substr(0, name.find('.')); }
  std::string_view before_star() const { return name.substr(0, name.find('*')); }
  std::string_view after_star() const { return name.substr(name.find('*') + 1); }
};
std::span<const Key> keys();  // in the order in which they are printed and read

struct FoundKey {
  const Key* key;
  std::string star;
};
std::optional<FoundKey> find_key(const std::string& text);  // by its name in the file
bool is_section(const std::string& text);                   // "data", "tenants", "tenants.physics"
std::string nearest_key(const std::string& text);

}  // namespace slime::switchd
