#include "tools/info/nccl_version.h"

#include <dlfcn.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "tools/info/child.h"
#include "tools/info/library.h"

namespace slime::info {
namespace {

constexpr double kLoadLimitS = 20;  // libnccl has hundreds of megabytes, maybe over a network

// Runs in the child.
nlohmann::json version_of(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) return {{"error", last_dl_error()}};
  using GetVersion = int (*)(int* version);
  const auto get_version = reinterpret_cast<GetVersion>(dlsym(handle, "ncclGetVersion"));
  if (get_version == nullptr) return {{"error", library + " has no ncclGetVersion"}};
  int code = 0;
  const int result = get_version(&code);
  if (result != 0) return {{"error", "ncclGetVersion returned " + std::to_string(result)}};
  return {{"code", code}, {"path", path_of_library(handle, library)}};
}

}  // namespace

Result<NcclVersion> parse_nccl_version(std::string_view text) {
  int parts[3] = {0, 0, kLastPatch};
  const char* at = text.data();
  const char* const end = at + text.size();
  int count = 0;
  while (count < 3) {
    const auto [next, error] = std::from_chars(at, end, parts[count]);
    if (error != std::errc() || parts[count] < 0 || parts[count] > kLastPatch) break;
    ++count;
    at = next;
    if (at == end || *at != '.') break;
    ++at;
  }
  if (at == end && count >= 2 && text.back() != '.' && parts[0] != 2) {
    return fail(
        make_error(Status::kConfig, 0,
                   "NCCL %.*s is none that is known here: versions are 2.x, such as 2.20.5; a "
                   "newer 2.x is answered for as the newest that is known",
                   static_cast<int>(text.size()), text.data()));
  }
  if (at != end || count < 2 || text.back() == '.') {
    return fail(make_error(Status::kConfig, 0,
                           "'%.*s' is no NCCL version; write it as in 2.20.5 or 2.28",
                           static_cast<int>(text.size()), text.data()));
  }
  return NcclVersion{parts[0], parts[1], parts[2]};
}

std::string to_string(const NcclVersion& version) {
  std::string text = std::to_string(version.major) + "." + std::to_string(version.minor);
  return version.patch == kLastPatch ? text : text + "." + std::to_string(version.patch);
}

// nccl.h: NCCL_VERSION(X,Y,Z), with another scale up to 2.8.
NcclVersion version_from_code(int code) {
  const int scale = code >= 10000 ? 10000 : 1000;
  return {code / scale, code % scale / 100, code % 100};
}

Result<InstalledNccl> ask_nccl_version(const std::string& library) {
  const auto answer =
      run_in_child([&library] { return version_of(library); }, kLoadLimitS, "loading " + library);
  if (!answer) return fail(answer.error());
  if (answer->contains("error")) {
    return fail(
        make_error(Status::kConfig, 0, "%s", answer->value("error", std::string()).c_str()));
  }
  return InstalledNccl{version_from_code(answer->value("code", 0)), answer->value("path", library)};
}

}  // namespace slime::info
