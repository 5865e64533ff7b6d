// Shared libraries as the dynamic linker finds them, and which of NCCL's symbols they have.
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "settings/times.h"
#include "tools/common/plugin_file.h"
#include "tools/info/probe.h"

namespace slime::info {
namespace {

namespace fs = std::filesystem;

constexpr int kOldestTable = 4, kNewestTable = 16;  // newer than known ones are worth naming

// Runs in the child. A table's name is its first field in every version.
Library read_tables(const std::string& name) {
  Library library;
  void* const handle = tools::open_as_nccl(name);
  if (handle == nullptr) {
    library.error = tools::last_dl_error();
    return library;
  }
  library.path = tools::path_of(handle, name);
  const auto find = [handle](const char* kind, int version) {
    return dlsym(handle, (kind + ("Plugin_v" + std::to_string(version))).c_str());
  };
  for (int version = 1; version <= kNewestTable; ++version) {
    if (find("ncclTuner", version) != nullptr) library.tuner_tables.push_back(version);
    if (version < kOldestTable) continue;
    if (find("ncclCollNet", version) != nullptr) library.collnet_tables.push_back(version);
    if (const void* const table = find("ncclNet", version)) {
      const char* const called = *static_cast<const char* const*>(table);
      library.net_tables[version] = called != nullptr ? called : "";
    }
  }
  return library;
}

// Runs in the child. Needs no GPU: ncclGetVersion returns a constant.
nlohmann::json read_version(const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) return {{"error", tools::last_dl_error()}};
  const auto get_version = reinterpret_cast<int (*)(int*)>(dlsym(handle, "ncclGetVersion"));
  if (get_version == nullptr) return {{"error", library + " has no ncclGetVersion"}};
  int code = 0;
  const int result = get_version(&code);
  if (result != 0) return {{"error", "ncclGetVersion returned " + std::to_string(result)}};
  return {{"code", code}, {"path", tools::path_of(handle, library)}};
}

// How `name` led to `path`.
std::string found_by(const std::string& name, const std::string& path) {
  if (name.empty()) return "the program itself";
  if (name.find('/') != std::string::npos) return "path";
  const bool listed = std::ranges::any_of(library_path(), [&](const fs::path& directory) {
    return (directory / name).string() == path;
  });
  return listed ? "LD_LIBRARY_PATH" : "system directories";
}

}  // namespace

Library open_library(const std::string& name) {
  const auto answer = run_in_child([&name] { return read_tables(name); }, times::kLibraryLoad,
                                   "opening " + (name.empty() ? "the program" : name));
  Library library;
  // `error` has the child's reason, or that of run_in_child() where the child has crashed.
  if (answer) answer->get_to(library);
  if (!answer) library.error = answer.error().what;
  library.name = name;
  // glibc: "<name>: cannot open shared object file: No such file or directory". A library that this
  // one needs and that is missing gives the same sentence with its own name.
  library.missing = answer && library.error.starts_with(name + ": ") &&
                    library.error.ends_with("No such file or directory");
  if (!library.opened()) return library;
  std::error_code error;
  library.real_path = fs::canonical(library.path, error).string();
  if (error) library.real_path = library.path;
  library.found_by = found_by(name, library.path);
  return library;
}

Result<KnownNccl> ask_nccl_version(const std::string& library) {
  const auto answer = run_in_child([&library] { return read_version(library); },
                                   times::kLibraryLoad, "loading " + library);
  if (!answer) return fail(answer.error());
  const auto error = answer->value("error", std::string());
  if (!error.empty()) return fail(make_error(Status::kConfig, 0, "%s", error.c_str()));
  return KnownNccl{tools::version_from_code(answer->value("code", 0)),
                   answer->value("path", library)};
}

int Library::newest_table_within(int oldest, int newest) const {
  const auto after = net_tables.upper_bound(newest);
  if (after == net_tables.begin()) return 0;
  const int version = std::prev(after)->first;
  return version >= oldest ? version : 0;
}

const Library& Probe::open(const std::string& name) {
  const auto known = std::ranges::find(libraries_, name, &Library::name);
  return known != libraries_.end() ? *known : libraries_.emplace_back(open_library(name));
}

const DeviceQuery& Probe::query(const std::string& library, int table) {
  const auto key = std::make_pair(library, table);
  const auto known = queries_.find(key);
  if (known != queries_.end()) return known->second;
  return queries_.emplace(key, query_devices(library, table)).first->second;
}

// Separated by colons or semicolons; an empty one is the current directory.
std::vector<std::string> library_path() {
  const char* const variable = getenv("LD_LIBRARY_PATH");
  std::vector<std::string> directories;
  if (variable == nullptr || variable[0] == '\0') return directories;
  std::string list = std::string(variable) + ":";
  std::ranges::replace(list, ';', ':');
  std::istringstream in(list);
  for (std::string directory; std::getline(in, directory, ':');) {
    directories.push_back(directory.empty() ? "." : directory);
  }
  return directories;
}

std::string slime_directory() {
  std::vector<std::string> directories = library_path();
  directories.push_back(tools::library_directory());
  std::error_code ignored;
  for (const fs::path directory : directories) {
    if (!directory.empty() && fs::exists(directory / "libnet-slime.so", ignored)) return directory;
  }
  return "";
}

}  // namespace slime::info
