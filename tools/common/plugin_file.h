// Loads the file that the newest known NCCL would load for a value of NCCL_NET_PLUGIN: by the last
// row of the rules (nccl_rules.h), with the same flags.
#pragma once

#include <string>

#include "base/error.h"

namespace slime::tools {

struct OpenedLibrary {
  void* handle = nullptr;
  std::string name;  // what dlopen was given
  std::string path;  // what the dynamic linker found
};

// The first name that loads. `search` is a directory tried for names without a slash that the
// dynamic linker does not find: libnccl's own RUNPATH plays that part in NCCL. Fails with all names
// and the dynamic linker's reasons.
Result<OpenedLibrary> open_plugin(const std::string& value, const std::string& search);

// ../lib beside this program.
std::string library_directory();

}  // namespace slime::tools
