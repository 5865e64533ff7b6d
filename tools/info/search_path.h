// Where the dynamic linker looks for a library, and where ours lies.
#pragma once

#include <string>
#include <vector>

namespace slime::info {

std::vector<std::string> library_path();  // the directories of LD_LIBRARY_PATH

// How `name` led to `path`: "path", "LD_LIBRARY_PATH" or "system directories".
std::string found_by(const std::string& name, const std::string& path);

// A directory with libnet-slime.so: of LD_LIBRARY_PATH, else ../lib beside this program. Empty:
// none. A checkout's build/ and an installation both have that layout.
std::string slime_directory();

std::string join(const std::string& directory, const std::string& file);
std::string real_path(const std::string& path);  // `path` itself where it cannot be resolved
bool exists(const std::string& path);

}  // namespace slime::info
