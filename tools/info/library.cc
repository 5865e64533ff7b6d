#include "tools/info/library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tools/info/child.h"
#include "tools/info/search_path.h"

namespace slime::info {
namespace {

constexpr double kOpenLimitS = 20;
constexpr int kOldestTable = 4, kNewestTable = 16;  // newer than known ones are worth naming

// Runs in the child. The name is the first field of every version's table.
nlohmann::json tables_of(const std::string& name) {
  void* handle = open_as_nccl(name);
  if (handle == nullptr) return {{"error", last_dl_error()}};
  nlohmann::json net = nlohmann::json::object();
  nlohmann::json collnet = nlohmann::json::array(), tuner = nlohmann::json::array();
  for (int version = kOldestTable; version <= kNewestTable; ++version) {
    const std::string suffix = "Plugin_v" + std::to_string(version);
    const void* table = dlsym(handle, ("ncclNet" + suffix).c_str());
    if (table != nullptr) {
      const char* const called = *static_cast<const char* const*>(table);
      net[std::to_string(version)] = called != nullptr ? called : "";
    }
    if (dlsym(handle, ("ncclCollNet" + suffix).c_str()) != nullptr) collnet.push_back(version);
  }
  for (int version = 1; version <= kNewestTable; ++version) {
    const std::string symbol = "ncclTunerPlugin_v" + std::to_string(version);
    if (dlsym(handle, symbol.c_str()) != nullptr) tuner.push_back(version);
  }
  return {{"path", path_of_library(handle, name)},
          {"net", net},
          {"collnet", collnet},
          {"tuner", tuner}};
}

// glibc: "<name>: cannot open shared object file: No such file or directory"; a library that one
// of ours needs and that is missing gives the same sentence with its own name.
bool says_missing(const std::string& error, const std::string& name) {
  return error.starts_with(name + ": ") && error.ends_with("No such file or directory");
}

Library ask(const std::string& name) {
  Library library;
  library.name = name;
  const auto answer = run_in_child([&name] { return tables_of(name); }, kOpenLimitS,
                                   "opening " + (name.empty() ? "the program" : name));
  if (!answer) {
    library.error = answer.error().what;
    return library;
  }
  library.error = answer->value("error", "");
  library.missing = says_missing(library.error, name);
  library.opened = library.error.empty();
  if (!library.opened) return library;
  library.path = answer->value("path", name);
  library.real_path = real_path(library.path);
  library.found_by = found_by(name, library.path);
  for (const auto& [version, called] : answer->at("net").items()) {
    library.net_tables[std::stoi(version)] = called.get<std::string>();
  }
  library.collnet_tables = answer->value("collnet", std::vector<int>());
  library.tuner_tables = answer->value("tuner", std::vector<int>());
  return library;
}

}  // namespace

int Library::newest_table_within(int oldest, int newest) const {
  for (int version = newest; version >= oldest; --version) {
    if (net_tables.count(version) != 0) return version;
  }
  return 0;
}

const Library& Libraries::open(const std::string& name) {
  const auto found = known_.find(name);
  if (found != known_.end()) return found->second;
  order_.push_back(name);
  return known_.emplace(name, ask(name)).first->second;
}

std::vector<const Library*> Libraries::asked() const {
  std::vector<const Library*> libraries;
  for (const std::string& name : order_) libraries.push_back(&known_.at(name));
  return libraries;
}

void* open_as_nccl(const std::string& name) {
  return dlopen(name.empty() ? nullptr : name.c_str(), RTLD_NOW | RTLD_LOCAL);
}

std::string last_dl_error() {
  const char* const reason = dlerror();
  return reason != nullptr ? reason : "the dynamic linker gave no reason";
}

std::string path_of_library(void* handle, const std::string& otherwise) {
  link_map* map = nullptr;
  const bool known = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr;
  return known && map->l_name[0] != '\0' ? map->l_name : otherwise;
}

}  // namespace slime::info
