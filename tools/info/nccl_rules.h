// How NCCL chooses a network plugin, release by release: a table of facts and what follows from it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/info/nccl_version.h"

namespace slime::info {

// Which names a value V of NCCL_NET_PLUGIN stands for.
enum class Naming {
  kPrefixed,               // libnccl-net-V.so
  kPlainThenPrefixed,      // V, then libnccl-net-V.so
  kLibraryElsePrefixed,    // V if it looks like lib*.so, else libnccl-net-V.so
  kPlainThenPrefixedWord,  // V, then libnccl-net-V.so unless V has a '/' or looks like lib*.so
};

// Releases that behave alike.
struct Era {
  NcclVersion first, last;
  Naming naming;
  size_t longest_name;         // of what goes to dlopen; NCCL cuts the rest off
  bool static_prefix = false;  // a prefix of STATIC_PLUGIN stands for the program itself
  bool list = false;           // V may be a comma-separated list; empty means no plugin at all
  bool none = false;           // the word "none" means no plugin
  bool forgets_name = false;   // see below
  int reference_count = 0;     // default of NCCL_NET_PLUGIN_REF_COUNT; -1: has none
  int newest_table = 0, oldest_table = 0;  // ncclNetPlugin_v<n> that are looked for
};

const std::vector<Era>& eras();  // oldest first
// The era of a release; one newer than the newest known counts as that one.
const Era& era_of(const NcclVersion& version);
bool is_newer_than_known(const NcclVersion& version);
NcclVersion newest_known();
NcclVersion oldest_usable();  // the first release that looks for a table this plugin has
std::string to_string(const Era& era);
// Several, oldest first, with neighbours joined: "2.13 - 2.20, 2.27.4 and later".
std::string to_string(const std::vector<const Era*>& several);

// Unloading a plugin with its last communicator clears the name too: the next communicator gets
// libnccl-net.so instead. True where that happens for a count of references as set.
bool forgets_name(const Era& era, std::optional<int> reference_count);

// The entries of NCCL_NET_PLUGIN. An unset variable is one empty entry: the default name.
struct Entries {
  std::vector<std::string> names;
  std::vector<std::string> ignored;  // and why
};
Entries entries_of(const Era& era, const std::optional<std::string>& value);

bool is_static_prefix(const Era& era, std::string_view name);
// What NCCL gives to dlopen for one entry, in order.
std::vector<std::string> names_of(const Era& era, const std::string& entry);

}  // namespace slime::info
