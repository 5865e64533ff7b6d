#include <dlfcn.h>

#include <string>

#include "tools/perf/coll_adapter.h"

namespace slime::perf {
namespace {

template <typename Table, typename Properties, int kVersion>
std::unique_ptr<CollApi> find_table(void* library) {
  const std::string symbol = "ncclCollNetPlugin_v" + std::to_string(kVersion);
  const auto* table = static_cast<const Table*>(dlsym(library, symbol.c_str()));
  if (table == nullptr) return nullptr;
  return std::make_unique<CollAdapter<Table, Properties, kVersion>>(table);
}

std::unique_ptr<CollApi> table_of(void* library, int version) {
  using namespace nccl;
  switch (version) {
    case 12:
      return find_table<CollNetV12, PropertiesV12, 12>(library);
    case 11:
      return find_table<CollNetV11, PropertiesV11, 11>(library);
    case 10:
      return find_table<CollNetV10, PropertiesV10, 10>(library);
    case 9:
      return find_table<CollNetV9, PropertiesV9, 9>(library);
    case 8:
      return find_table<CollNetV8, PropertiesV8, 8>(library);
    case 7:
      return find_table<CollNetV7, PropertiesV7, 7>(library);
    case 6:
      return find_table<CollNetV6, PropertiesV6, 6>(library);
    default:
      return nullptr;
  }
}

}  // namespace

std::unique_ptr<CollApi> find_coll_table(void* library, int max_api) {
  for (int version = max_api; version >= 6; --version) {
    auto table = table_of(library, version);
    if (table != nullptr) return table;
  }
  return nullptr;
}

}  // namespace slime::perf
