// How NCCL chooses a network plugin: a table with one row for each range of releases that behave
// alike, and the functions that apply a row. slime-info applies any row, slime-perf the newest one
// (plugin_file.h).
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace slime::tools {

struct NcclVersion {
  int major = 0, minor = 0, patch = 0;
  auto operator<=>(const NcclVersion&) const = default;
};

inline constexpr int kLastPatch = 999;  // "2.27": the newest of that series
inline constexpr NcclVersion kNewestKnown{2, 30, 7};
// The first release that looks for a table this plugin has (ncclNetPlugin_v6).
inline constexpr NcclVersion kOldestUsable{2, 13, 0};
inline constexpr char kDefaultPlugin[] = "libnccl-net.so";

Result<NcclVersion> parse_nccl_version(const std::string& text);  // "2.20.5" or "2.20"
std::string to_string(const NcclVersion& version);
NcclVersion version_from_code(int code);  // what ncclGetVersion returns

// Kinds of values of NCCL_NET_PLUGIN (or of its list's entries) that a row treats alike.
enum class Values : uint8_t {
  kNone,
  kAll,
  kLibraries,    // lib*.so
  kNoLibraries,  // all others
  kWords,        // neither lib*.so nor anything with a '/'
};

// What a release does with the value besides that.
enum Feature : unsigned {
  kStaticPlugin = 1,  // a prefix of STATIC_PLUGIN, in any case, stands for the program itself
  kList = 2,          // the value is a comma-separated list; an empty one means no plugin
  kNoneWord = 4,      // "none", in any case, means no plugin
};

struct NcclRules {
  NcclVersion first, last;
  Values plain;                    // for which V dlopen(V) is tried
  Values prefixed;                 // for which V dlopen("libnccl-net-V.so") is tried, after that
  size_t name_size;                // of NCCL's buffer: longer names are cut
  int oldest_table, newest_table;  // ncclNetPlugin_v<n> that are looked for, newest first
  unsigned features;
  // The default of NCCL_NET_PLUGIN_REF_COUNT where 0 means: the last communicator unloads the
  // plugin and clears its name, so that the next one gets libnccl-net.so. -1: never cleared.
  int reference_count;

  bool has(Feature feature) const { return (features & feature) != 0; }
  bool forgets_name(std::optional<int> count) const {
    return reference_count >= 0 && count.value_or(reference_count) == 0;
  }
};

std::span<const NcclRules> nccl_rules();  // oldest first
// A release newer than the newest row counts as of that row.
const NcclRules& rules_of(const NcclVersion& version);
// Rows of the table, oldest first, with neighbours joined: "2.13 - 2.20, 2.27.4 and later".
std::string release_names(std::span<const NcclRules* const> rows);

// The entries of NCCL_NET_PLUGIN. An unset variable is one empty entry: the default name.
struct Entries {
  std::vector<std::string> names;
  std::vector<std::string> ignored;  // and why
};
Entries entries_of(const NcclRules& rules, const std::optional<std::string>& value);

// The whole value stands for no external plugin.
bool means_no_plugin(const NcclRules& rules, const std::string& value);
// False: the entry is a path or a file name, but these versions of NCCL put a prefix before it.
bool takes_entry(const NcclRules& rules, const std::string& entry);
// What NCCL gives to dlopen for one entry, in order. An empty name is NULL: the program itself.
std::vector<std::string> dlopen_names(const NcclRules& rules, const std::string& entry);

}  // namespace slime::tools
