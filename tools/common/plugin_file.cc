#include "tools/common/plugin_file.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <climits>

namespace slime::tools {
namespace {

OpenedLibrary try_open(const std::string& name) {
  OpenedLibrary library{dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL), name, name};
  link_map* map = nullptr;
  if (library.handle != nullptr && dlinfo(library.handle, RTLD_DI_LINKMAP, &map) == 0 &&
      map != nullptr && map->l_name[0] != '\0') {
    library.path = map->l_name;
  }
  return library;
}

// What the loader answers before libnccl's RUNPATH would be used up: the file is not there.
OpenedLibrary try_name(const std::string& name, const std::string& search,
                       std::vector<FailedName>* failed) {
  OpenedLibrary library = try_open(name);
  if (library.handle != nullptr) return library;
  const char* reason = dlerror();
  failed->push_back({name, reason != nullptr ? reason : "unknown"});
  if (search.empty() || name.find('/') != std::string::npos) return library;
  const std::string beside = search + "/" + name;
  if (access(beside.c_str(), F_OK) != 0) return library;
  library = try_open(beside);
  if (library.handle != nullptr) return library;
  reason = dlerror();
  failed->push_back({beside, reason != nullptr ? reason : "unknown"});
  return library;
}

}  // namespace

std::vector<std::string> dlopen_names(std::string_view entry) {
  const std::string name(entry);
  if (name.empty()) return {"libnccl-net.so"};
  std::vector<std::string> names = {name};
  const bool is_library = entry.starts_with("lib") && entry.ends_with(".so");
  if (entry.find('/') == std::string_view::npos && !is_library) {
    names.push_back("libnccl-net-" + name + ".so");
  }
  return names;
}

std::vector<std::string> plugin_entries(std::string_view value) {
  std::vector<std::string> entries;
  for (size_t start = 0; start < value.size();) {
    const size_t comma = std::min(value.find(',', start), value.size());
    if (comma > start) entries.emplace_back(value.substr(start, comma - start));
    start = comma + 1;
  }
  if (entries.empty()) entries.emplace_back();
  return entries;
}

Result<OpenedLibrary> open_plugin(std::string_view value, const std::string& search,
                                  std::vector<FailedName>* failed) {
  std::vector<FailedName> tried;
  if (value == "none") {
    return fail(
        make_error(Status::kConfig, 0, "NCCL_NET_PLUGIN=none means no external plugin; unset it"));
  }
  for (const std::string& entry : plugin_entries(value)) {
    for (const std::string& name : dlopen_names(entry)) {
      OpenedLibrary library = try_name(name, search, &tried);
      if (failed != nullptr) *failed = tried;
      if (library.handle != nullptr) return library;
    }
  }
  std::string text;
  for (const FailedName& name : tried) text += "\n  " + name.name + ": " + name.reason;
  return fail(make_error(Status::kConfig, 0,
                         "no network plugin could be loaded; build it with 'make', or name it with "
                         "--plugin or NCCL_NET_PLUGIN. Tried:%s",
                         text.c_str()));
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
