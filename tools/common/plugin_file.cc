#include "tools/common/plugin_file.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <climits>

#include "tools/common/nccl_rules.h"

namespace slime::tools {
namespace {

// Appends the name and the reason to `failed` where it cannot be loaded.
OpenedLibrary try_open(const std::string& name, std::string* failed) {
  void* const handle = open_as_nccl(name);
  if (handle == nullptr) {
    *failed += "\n  " + name + ": " + last_dl_error();
    return {};
  }
  return {handle, name, path_of(handle, name.empty() ? "the program itself" : name)};
}

}  // namespace

Result<OpenedLibrary> open_plugin(const std::string& value, const std::string& search) {
  const NcclRules& rules = nccl_rules().back();
  if (means_no_plugin(rules, value)) {
    return fail(make_error(Status::kConfig, 0,
                           "NCCL_NET_PLUGIN=%s means no external plugin; unset it", value.c_str()));
  }
  std::string failed;
  for (const std::string& entry : entries_of(rules, value).names) {
    for (const std::string& name : dlopen_names(rules, entry)) {
      OpenedLibrary library = try_open(name, &failed);
      if (library.handle != nullptr) return library;
      const std::string beside = search + "/" + name;
      const bool searched = !search.empty() && name.find('/') == std::string::npos;
      if (!searched || access(beside.c_str(), F_OK) != 0) continue;
      library = try_open(beside, &failed);
      if (library.handle != nullptr) return library;
    }
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
