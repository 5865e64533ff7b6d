// The tables of functions that a plugin exports, whatever their version, and the calls that nets
// and CollNets share.
//
// Versions differ in types and in arguments. A call here takes all arguments that any version has,
// and passes on those that the version of the table has. As in NCCL, a table stays the plugin's,
// and only its address is kept.
#pragma once

#include <dlfcn.h>

#include <array>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "plugin/abi/types.h"
#include "tools/common/device_properties.h"

namespace slime::tools {

using Code = nccl::ResultCode;

// For each argument, whether the parameter takes it: its own type, or an integer for an integer.
template <typename Parameter, typename... Arguments>
constexpr std::array<bool, sizeof...(Arguments)> taken_by() {
  return {(std::is_same_v<Parameter, Arguments> ||
           (std::is_integral_v<Parameter> && std::is_integral_v<Arguments>))...};
}

// Calls a plugin's function with those of the arguments that its version has: each parameter takes
// the next argument that it can.
template <typename... Parameters, typename... Arguments>
Code call_with(Code (*function)(Parameters...), Arguments... arguments) {
  constexpr auto kChosen = [] {
    constexpr std::array<bool, sizeof...(Arguments)> kTaken[] = {
        taken_by<Parameters, Arguments...>()...};
    std::array<size_t, sizeof...(Parameters)> chosen{};
    for (size_t parameter = 0, argument = 0; parameter < chosen.size(); ++parameter, ++argument) {
      while (!kTaken[parameter][argument]) ++argument;
      chosen[parameter] = argument;
    }
    return chosen;
  }();
  const std::tuple<Arguments...> all(arguments...);
  return [&]<size_t... kIndex>(std::index_sequence<kIndex...>) {
    return function(static_cast<Parameters>(std::get<kChosen[kIndex]>(all))...);
  }
  (std::index_sequence_for<Parameters...>());
}

// The entry of this name in a table of any version.
#define SLIME_ENTRY(name) [](const auto* table) { return table->name; }

// A table of one version. `Tables` are those of version kFirst, kFirst + 1 and so on.
//
// States: nothing bound (version 0) -> bound. A bound table does not change, so any thread may read
// it.
template <int kFirst, typename... Tables>
class VersionedTable {
 public:
  static constexpr int kOldest = kFirst, kNewest = kFirst + static_cast<int>(sizeof...(Tables)) - 1;

  int version() const { return version_; }
  const char* name() const { return with(SLIME_ENTRY(name)); }
  std::string symbol(int version) const { return symbol_ + std::to_string(version); }

  // False: `library` has no table of that version.
  bool bind(void* library, int version) {
    const void* const found = dlsym(library, symbol(version).c_str());
    if (found == nullptr || version < kOldest || version > kNewest) return false;
    table_ = found;
    version_ = version;
    return true;
  }
  // The newest table that the library has, up to version `most`.
  bool bind_newest(void* library, int most) {
    int version = most;
    while (version >= kOldest && !bind(library, version)) --version;
    return version >= kOldest;
  }

  // For what is no call of all versions: `function` gets the table as its version declares it.
  template <typename Function>
  auto with(Function function) const {
    return choose<kFirst, Tables...>(function);
  }

 protected:
  // `symbol`: of a table, but for the number of its version.
  explicit VersionedTable(const char* symbol) : symbol_(symbol) {}

 private:
  // `Table` is that of version kVersion, and `Newer` those of the versions after it.
  template <int kVersion, typename Table, typename... Newer, typename Function>
  auto choose(const Function& function) const {
    if constexpr (sizeof...(Newer) > 0) {
      if (version_ > kVersion) return choose<kVersion + 1, Newer...>(function);
    }
    return function(static_cast<const Table*>(table_));
  }

  const char* symbol_;
  const void* table_ = nullptr;
  int version_ = 0;
};

// What tables of nets and of CollNets share; `Tables` are those of version 6, 7 and so on.
//
// States: nothing bound -> bound -> initialised, with the context that the plugin gave (v11 and
// later). Threads: calls of a bound table may come from whatever thread NCCL would make them on.
template <typename... Tables>
class PluginTable : public VersionedTable<6, Tables...> {
 public:
  Code init(nccl::Logger logger, uint64_t comm_id,
            const nccl::NetCommConfig* config = &kNoTrafficClass) {
    return init_into(&context_, logger, comm_id, config);
  }
  Code init_into(void** context, nccl::Logger logger, uint64_t comm_id,
                 const nccl::NetCommConfig* config) const {
    const nccl::ProfilerCallback no_profiler = nullptr;
    return call(SLIME_ENTRY(init), context, comm_id, config, logger, no_profiler);
  }
  Code finalize() const { return finalize(context_); }
  Code finalize(void* context) const {  // nothing before v11
    return this->with([&](const auto* table) {
      if constexpr (requires { table->finalize; }) return table->finalize(context);
      return nccl::kSuccess;
    });
  }
  Code devices(int* count) const { return call(SLIME_ENTRY(devices), count); }
  Code properties(int device, DeviceProperties* to) const {
    return this->with([&](const auto* table) { return ask(table->get_properties, device, to); });
  }
  Code listen(int device, void* handle, void** comm) const {
    return call(SLIME_ENTRY(listen), context_, device, handle, comm);
  }
  Code close_listen(void* comm) const { return call(SLIME_ENTRY(close_listen), comm); }
  Code reg_mr(void* comm, void* data, size_t bytes, int type, void** mhandle) const {
    return call(SLIME_ENTRY(reg_mr), comm, data, bytes, type, mhandle);
  }
  Code dereg_mr(void* comm, void* mhandle) const {
    return call(SLIME_ENTRY(dereg_mr), comm, mhandle);
  }
  Code test(void* request, int* done, int* sizes) const {
    return call(SLIME_ENTRY(test), request, done, sizes);
  }

 protected:
  using VersionedTable<6, Tables...>::VersionedTable;

  template <typename Entry, typename... Arguments>
  Code call(Entry entry, Arguments... arguments) const {
    return this->with([&](const auto* table) { return call_with(entry(table), arguments...); });
  }

  void* context_ = nullptr;

 private:
  static constexpr nccl::NetCommConfig kNoTrafficClass{nccl::kTrafficClassUndefined};

  template <typename Properties>
  static Code ask(Code (*get_properties)(int, Properties*), int device, DeviceProperties* to) {
    if (to == nullptr) return get_properties(device, nullptr);
    Properties from{};
    const Code code = get_properties(device, &from);
    if (code == nccl::kSuccess) *to = widen(from);
    return code;
  }
};

}  // namespace slime::tools
