#include "tools/common/plugin_file.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <climits>
#include <filesystem>
#include <vector>

#include "tools/common/nccl_rules.h"

namespace slime::tools {
namespace {

// What is given to dlopen, in order.
std::vector<std::string> names_for(const Entries& entries, const std::string& directory) {
  std::vector<std::string> names;
  for (const std::string& entry : entries.names) {
    for (const std::string& name : dlopen_names(nccl_rules().back(), entry)) {
      if (name.empty()) continue;  // STATIC_PLUGIN: this program has none
      names.push_back(name);
      const auto beside = std::filesystem::path(directory) / name;
      std::error_code ignored;
      const bool searched = !directory.empty() && name.find('/') == std::string::npos;
      if (searched && std::filesystem::exists(beside, ignored)) names.push_back(beside);
    }
  }
  return names;
}

}  // namespace

Result<OpenedLibrary> open_plugin(const std::string& value, const std::string& directory) {
  const Entries entries = entries_of(nccl_rules().back(), value);
  std::vector<std::string> names = names_for(entries, directory);
  if (value.empty()) names.push_back(directory + "/libnet-slime.so");
  if (names.empty() && entries.ignored.empty()) {
    return fail(make_error(Status::kConfig, 0,
                           "NCCL_NET_PLUGIN=%s means no external plugin; unset it", value.c_str()));
  }
  std::string failed;
  const auto add = [&failed](const std::string& one) {
    failed += (failed.empty() ? " " : "; ") + one;
  };
  for (const std::string& ignored : entries.ignored) add(ignored);
  for (const std::string& name : names) {
    void* const handle = open_as_nccl(name);
    if (handle != nullptr) {
      return OpenedLibrary{handle, name, path_of(handle, name)};
    }
    add(name + ": " + last_dl_error());
  }
  return fail(make_error(Status::kConfig, 0,
                         "no network plugin could be loaded; build it with 'make', or name it with "
                         "--plugin or NCCL_NET_PLUGIN. Tried:%s",
                         failed.c_str()));
}

void* open_as_nccl(const std::string& name) {
  return dlopen(name.empty() ? nullptr : name.c_str(), RTLD_NOW | RTLD_LOCAL);
}

std::string last_dl_error() {
  const char* const reason = dlerror();
  return reason != nullptr ? reason : "the dynamic linker gave no reason";
}

std::string path_of(void* library, const std::string& otherwise) {
  link_map* map = nullptr;
  const bool known = dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr;
  return known && map->l_name[0] != '\0' ? map->l_name : otherwise;
}

std::string library_directory() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0) return "";
  std::string program(path, static_cast<size_t>(length));
  const size_t slash = program.rfind('/');
  if (slash == std::string::npos) return "";
  program.resize(slash);
  const size_t parent = program.rfind('/');
  return parent == std::string::npos ? "" : program.substr(0, parent) + "/lib";
}

}  // namespace slime::tools
