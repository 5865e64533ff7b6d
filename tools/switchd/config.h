// The daemon's configuration: a YAML file of two levels, every key with a default.
//
//     file ──read_config──▶ Values ──make_config──▶ Config ──load_keys──▶ KeyRing
//
// Values are texts as the user writes them; a Config has been checked, each key for itself and all
// of them together. Errors name the key, the value and what is accepted.
// Thread rules: pure functions, but for reading files.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "switch/controller/connection.h"
#include "switch/p4driver/options.h"
#include "switch/softswitch/softswitch.h"

namespace slime::switchd {

enum class Driver { kSoftware, kBmv2, kTofino };

// Where a host is that a switch in P4 forwards to.
struct HostPort {
  std::optional<uint64_t> mac;
  std::optional<uint16_t> port;
};

// What each part of the daemon is opened with. The daemon adds what is no key of the file: the
// keys that key_files.cc reads, and the seed of the controller.
struct Config {
  Driver driver = Driver::kSoftware;
  net::SoftSwitchOptions data;            // a switch in P4 has address, shards, lanes and formats
  net::P4Options p4;                      // and this, but for its hosts
  std::map<std::string, HostPort> hosts;  // of a switch in P4, by address
  net::ServerOptions control;
  net::ControllerOptions controller;
  std::string key_file;     // empty: no key
  std::string tenant_keys;  // a directory; empty: tenants have the key of key_file
  std::string parent_key_file;
  std::optional<SocketAddress> metrics_listen;  // absent: no metrics
};

// Values as the user writes them, under names like "data.shards", "tenants.physics.max_jobs" and
// "hosts.10.0.0.1.port".
using Values = std::map<std::string, std::string>;

// Defaults, then `values`. An error names the key, the value and what is accepted.
Result<Config> make_config(const Values& values);

// The file that would give these values, with every key and what it means.
std::string print_config(const Values& values);

// Reads the file. An error names the file, and the line of the key or else of its section.
Result<Config> read_config(const std::string& path, Values* values);

// The keys that the configuration names, read from their files (key_files.cc). Errors name the key
// of the configuration, and the file.
Result<net::KeyRing> load_keys(const Config& config);
Result<SecretKey> load_parent_key(const Config& config);

// The keys: one constant table serves the reader of the file, the checks and --print-config
// (config_keys.cc).

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
