// Which file NCCL loads for a value of NCCL_NET_PLUGIN: the rules of NCCL 2.27 and later
// (src/plugin/plugin_open.cc, src/plugin/net.cc), tried in the same order with the same flags.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace slime::tools {

// The names that NCCL gives to dlopen for one entry of the list, in order.
std::vector<std::string> dlopen_names(std::string_view entry);

// NCCL_NET_PLUGIN may be a comma-separated list. Empty: the default, libnccl-net.so.
std::vector<std::string> plugin_entries(std::string_view value);

struct OpenedLibrary {
  void* handle = nullptr;
  std::string name;  // what dlopen was given
  std::string path;  // what the dynamic linker found
};

struct FailedName {
  std::string name;
  std::string reason;  // dlerror()
};

// The first name that loads; those before it go to `failed` (may be nullptr). `search` is a
// directory tried for names without a slash that the dynamic linker does not find: libnccl's own
// RUNPATH plays that part in NCCL. Fails with all names and reasons.
Result<OpenedLibrary> open_plugin(std::string_view value, const std::string& search,
                                  std::vector<FailedName>* failed);

// ../lib beside this program.
std::string library_directory();

}  // namespace slime::tools
