// An NCCL release, and which one is installed here.
#pragma once

#include <compare>
#include <string>
#include <string_view>

#include "base/error.h"

namespace slime::info {

struct NcclVersion {
  int major = 0, minor = 0, patch = 0;
  auto operator<=>(const NcclVersion&) const = default;
};

inline constexpr int kLastPatch = 999;  // "2.27": the newest of that series

Result<NcclVersion> parse_nccl_version(std::string_view text);  // "2.20.5" or "2.20"
std::string to_string(const NcclVersion& version);
NcclVersion version_from_code(int code);  // what ncclGetVersion returns

struct InstalledNccl {
  NcclVersion version;
  std::string path;
};

// Loads `library` (a path, or a name for the dynamic linker) in a process of its own and asks it.
Result<InstalledNccl> ask_nccl_version(const std::string& library);

}  // namespace slime::info
