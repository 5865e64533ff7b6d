#include <dlfcn.h>
#include <strings.h>

#include <cstdlib>

#include "tools/common/plugin_file.h"
#include "tools/perf/net_adapter.h"
#include "tools/perf/plugin.h"

namespace slime::perf {
namespace {

template <typename Table, typename Properties, int kVersion>
std::unique_ptr<NetApi> find_table(void* library) {
  const std::string symbol = "ncclNetPlugin_v" + std::to_string(kVersion);
  const auto* table = static_cast<const Table*>(dlsym(library, symbol.c_str()));
  if (table == nullptr) return nullptr;
  return std::make_unique<NetAdapter<Table, Properties, kVersion>>(table);
}

std::unique_ptr<NetApi> table_of(void* library, int version) {
  using namespace nccl;
  switch (version) {
    case 12:
      return find_table<NetV12, PropertiesV12, 12>(library);
    case 11:
      return find_table<NetV11, PropertiesV11, 11>(library);
    case 10:
      return find_table<NetV10, PropertiesV10, 10>(library);
    case 9:
      return find_table<NetV9, PropertiesV9, 9>(library);
    case 8:
      return find_table<NetV8, PropertiesV8, 8>(library);
    case 7:
      return find_table<NetV7, PropertiesV7, 7>(library);
    case 6:
      return find_table<NetV6, PropertiesV6, 6>(library);
    default:
      return nullptr;
  }
}

std::string value_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr ? value : "";
}

}  // namespace

const char* result_name(nccl::ResultCode code) {
  switch (code) {
    case nccl::kSuccess:
      return "ncclSuccess";
    case nccl::kUnhandledCudaError:
      return "ncclUnhandledCudaError";
    case nccl::kSystemError:
      return "ncclSystemError";
    case nccl::kInternalError:
      return "ncclInternalError";
    case nccl::kInvalidArgument:
      return "ncclInvalidArgument";
    case nccl::kInvalidUsage:
      return "ncclInvalidUsage";
    case nccl::kRemoteError:
      return "ncclRemoteError";
    case nccl::kInProgress:
      return "ncclInProgress";
  }
  return "an unknown result code";
}

Result<void> Plugin::load(const std::string& value, int max_api) {
  const std::string directory = tools::library_directory();
  std::string name = value.empty() ? value_of("NCCL_NET_PLUGIN") : value;
  if (name.empty()) name = directory + "/libnet-slime.so";
  auto library = tools::open_plugin(name, directory, nullptr);
  if (!library) return fail(library.error());
  path_ = library->path;
  max_api_ = max_api;
  bool has_newer = false;
  for (int version = 12; version >= 6 && net_ == nullptr; --version) {
    auto table = table_of(library->handle, version);
    if (table == nullptr) continue;
    has_newer |= version > max_api;
    if (version <= max_api) net_ = std::move(table);
  }
  if (net_ == nullptr) {
    return fail(make_error(Status::kConfig, 0,
                           "%s has no ncclNetPlugin_v6 to _v%d%s: NCCL would not take it either",
                           path_.c_str(), max_api, has_newer ? " (only newer ones)" : ""));
  }
  coll_ = find_coll_table(library->handle, max_api);
  // NCCL_NET filters by the name in the table (src/plugin/net.cc).
  const std::string wanted = value_of("NCCL_NET");
  if (!wanted.empty() && strcasecmp(wanted.c_str(), net_->name()) != 0) {
    return fail(make_error(Status::kConfig, 0,
                           "NCCL_NET=%s, but %s calls itself %s: NCCL would not use it; unset "
                           "NCCL_NET or correct it",
                           wanted.c_str(), path_.c_str(), net_->name()));
  }
  return {};
}

}  // namespace slime::perf
