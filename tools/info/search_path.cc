#include "tools/info/search_path.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tools/common/plugin_file.h"

namespace slime::info {

// ld.so(8): separated by colons or semicolons; an empty one is the current directory.
std::vector<std::string> library_path() {
  const char* const value = getenv("LD_LIBRARY_PATH");
  std::vector<std::string> directories;
  if (value == nullptr || value[0] == '\0') return directories;
  std::string directory;
  for (const char* at = value;; ++at) {
    if (*at != ':' && *at != ';' && *at != '\0') {
      directory += *at;
      continue;
    }
    directories.push_back(directory.empty() ? "." : directory);
    directory.clear();
    if (*at == '\0') return directories;
  }
}

std::string found_by(const std::string& name, const std::string& path) {
  if (name.empty()) return "the program itself";
  if (name.find('/') != std::string::npos) return "path";
  const auto directories = library_path();
  const bool listed = std::any_of(directories.begin(), directories.end(),
                                  [&](const auto& each) { return join(each, name) == path; });
  return listed ? "LD_LIBRARY_PATH" : "system directories";
}

std::string slime_directory() {
  std::vector<std::string> directories = library_path();
  directories.push_back(tools::library_directory());
  for (const std::string& directory : directories) {
    if (!directory.empty() && exists(join(directory, "libnet-slime.so"))) return directory;
  }
  return "";
}

std::string join(const std::string& directory, const std::string& file) {
  return directory.ends_with('/') ? directory + file : directory + "/" + file;
}

std::string real_path(const std::string& path) {
  std::error_code error;
  const auto resolved = std::filesystem::canonical(path, error);
  return error ? path : resolved.string();
}

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

}  // namespace slime::info
