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

// The first name that loads; where the value is empty, libnet-slime.so in `directory`. Names
// without a slash that the dynamic linker does not find are tried in `directory` too: libnccl's own
// RUNPATH plays that part in NCCL. Fails with all names and the dynamic linker's reasons.
Result<OpenedLibrary> open_plugin(const std::string& value, const std::string& directory);

// dlopen with NCCL's flags; an empty name is the program itself. nullptr: last_dl_error() says why.
void* open_as_nccl(const std::string& name);
std::string last_dl_error();
// What the dynamic linker found. The program itself has no name of its own in its list.
std::string path_of(void* library, const std::string& otherwise);

// ../lib beside this program.
std::string library_directory();

}  // namespace slime::tools
