// The tables of a network plugin as slime-perf sees them: NCCL's calls, whatever their version. As
// in NCCL, a table stays the plugin's, and only its address is kept.
//
// Versions differ only in types and in arguments that are always passed alike here. A table is
// bound once, when the library is loaded, and constant from then on but for the context that init
// fills; its calls may be made by whatever thread NCCL would make them on.
#pragma once

#include <dlfcn.h>

#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <variant>

#include "plugin/abi/collnet_tables.h"
#include "plugin/abi/net_tables.h"

namespace slime::perf {

using Code = nccl::ResultCode;

inline constexpr int kFirstVersion = 6, kLastVersion = 12;
// What NCCL takes for CollNet tables before v9, which do not say it (MAX_COLLNET_SIZE).
inline constexpr size_t kMaxCollBytes = size_t{512} << 20;

// Calls a plugin's function with those of the arguments that its version has: each parameter takes
// the next argument of its type; integers are converted.
template <typename... Parameters, typename... Taken>
Code call_with(Code (*function)(Parameters...), const std::tuple<Taken...>& taken) {
  return std::apply(function, taken);
}
template <typename... Parameters, typename... Taken, typename First, typename... Rest>
Code call_with(Code (*function)(Parameters...), const std::tuple<Taken...>& taken, First first,
               Rest... rest) {
  if constexpr (sizeof...(Taken) == sizeof...(Parameters)) {
    return std::apply(function, taken);
  } else {
    using Next = std::tuple_element_t<sizeof...(Taken), std::tuple<Parameters...>>;
    constexpr bool kIntegers = std::is_integral_v<Next> && std::is_integral_v<First>;
    if constexpr (std::is_same_v<Next, First> || kIntegers) {
      const std::tuple<Next> next(static_cast<Next>(first));
      return call_with(function, std::tuple_cat(taken, next), rest...);
    } else {
      return call_with(function, taken, rest...);
    }
  }
}

#define SLIME_ENTRY(name) [](const auto* table) { return table->name; }

// What both kinds have. `Tables` are those of version 6, 7 and so on.
template <typename... Tables>
class PluginTable {
 public:
  int version() const { return version_; }  // 0: none is bound
  const char* name() const { return with(SLIME_ENTRY(name)); }

  // `kind` begins the symbol's name. False: the library has no table of that version.
  bool bind(void* library, const std::string& kind, int version) {
    const void* const found = dlsym(library, (kind + std::to_string(version)).c_str());
    if (found == nullptr) return false;
    version_ = version;
    [&]<size_t... kIndex>(std::index_sequence<kIndex...>) {
      (void)((kIndex + kFirstVersion == static_cast<size_t>(version) &&
              table_.template emplace<kIndex>(static_cast<const Tables*>(found)) != nullptr) ||
             ...);
    }
    (std::index_sequence_for<Tables...>());
    return true;
  }

  Code init(nccl::Logger logger, uint64_t comm_id) {
    const nccl::ProfilerCallback no_profiler = nullptr;
    return call(SLIME_ENTRY(init), &context_, comm_id, &kConfig, logger, no_profiler);
  }
  Code finalize() const {  // nothing before v11
    return with([&](const auto* table) {
      if constexpr (requires { table->finalize; }) return table->finalize(context_);
      return nccl::kSuccess;
    });
  }
  Code devices(int* count) const { return call(SLIME_ENTRY(devices), count); }
  Code listen(int device, void* handle, void** comm) const {
    return call(SLIME_ENTRY(listen), context_, device, handle, comm);
  }
  Code close_listen(void* comm) const { return call(SLIME_ENTRY(close_listen), comm); }
  Code reg_mr(void* comm, void* data, size_t bytes, void** mhandle) const {
    // NCCL's shim for these tables refuses what an int cannot hold (net_v7.cc).
    if (version_ <= 7 && bytes >= size_t{1} << 31) return nccl::kInternalError;
    return call(SLIME_ENTRY(reg_mr), comm, data, bytes, nccl::kPointerHost, mhandle);
  }
  Code dereg_mr(void* comm, void* mhandle) const {
    return call(SLIME_ENTRY(dereg_mr), comm, mhandle);
  }
  Code test(void* request, int* done, int* sizes) const {
    return call(SLIME_ENTRY(test), request, done, sizes);
  }

 protected:
  static constexpr nccl::NetCommConfig kConfig{nccl::kTrafficClassUndefined};

  template <typename Function>
  auto with(Function function) const {
    return std::visit(function, table_);
  }
  template <typename Entry, typename... Arguments>
  Code call(Entry entry, Arguments... arguments) const {
    return with(
        [&](const auto* table) { return call_with(entry(table), std::tuple<>(), arguments...); });
  }
  template <typename Properties>
  static std::optional<Properties> ask(Code (*get_properties)(int, Properties*), int device) {
    Properties properties{};
    if (get_properties(device, &properties) != nccl::kSuccess) return std::nullopt;
    return properties;
  }

  void* context_ = nullptr;

 private:
  std::variant<const Tables*...> table_;
  int version_ = 0;
};

struct NetProperties {
  std::string name, pci_path;
  int speed_mbps = 0;
  float latency_us = 0;
  int max_receives = 1;
  bool on_host = true;                     // no device offload
  size_t max_p2p_bytes = size_t{1} << 30;  // what NCCL assumes for tables before v9
};

class NetTable : public PluginTable<nccl::NetV6, nccl::NetV7, nccl::NetV8, nccl::NetV9,
                                    nccl::NetV10, nccl::NetV11, nccl::NetV12> {
 public:
  // NCCL passes *request = 1 to an irecv whose completion it will not look at.
  bool optional_completion() const { return version() >= 9; }

  std::optional<NetProperties> properties(int device) const {
    return with([&](const auto* table) -> std::optional<NetProperties> {
      const auto in = ask(table->get_properties, device);
      if (!in) return std::nullopt;
      const auto text = [](const char* given) { return given != nullptr ? given : ""; };
      NetProperties out{text(in->name), text(in->pci_path), in->speed_mbps, in->latency_us,
                        in->max_receives};
      if constexpr (requires { in->net_device_type; }) {
        out.on_host = in->net_device_type == nccl::kNetDeviceHost;
      }
      if constexpr (requires { in->max_p2p_bytes; }) out.max_p2p_bytes = in->max_p2p_bytes;
      return out;
    });
  }
  Code connect(int device, void* handle, void** comm) const {
    nccl::NetDeviceHandle* offload = nullptr;
    return call(SLIME_ENTRY(connect), context_, device, &kConfig, handle, comm, &offload);
  }
  Code accept(void* listen_comm, void** comm) const {
    nccl::NetDeviceHandle* offload = nullptr;
    return call(SLIME_ENTRY(accept), listen_comm, comm, &offload);
  }
  Code close_send(void* comm) const { return call(SLIME_ENTRY(close_send), comm); }
  Code close_recv(void* comm) const { return call(SLIME_ENTRY(close_recv), comm); }
  Code isend(void* comm, void* data, size_t bytes, int tag, void* mhandle, void** request) const {
    void* const profile = &no_profile_;
    return call(SLIME_ENTRY(isend), comm, data, bytes, tag, mhandle, profile, request);
  }
  Code irecv(void* comm, void* data, size_t bytes, int tag, void* mhandle, void** request) const {
    return with([&](const auto* table) {
      using Size = std::conditional_t < requires(int* sizes) {
        table->irecv(comm, 1, &data, sizes, &tag, &mhandle, request);
      }
      , int, size_t > ;
      auto size = static_cast<Size>(bytes);
      void* profile = &no_profile_;
      if constexpr (requires { table->irecv(comm, 1, &data, &size, &tag, &mhandle, request); }) {
        return table->irecv(comm, 1, &data, &size, &tag, &mhandle, request);
      } else {
        return table->irecv(comm, 1, &data, &size, &tag, &mhandle, &profile, request);
      }
    });
  }
  void receive_consumed(void* comm, void* request) const {  // from v7; may do nothing
    with([&](const auto* table) {
      if constexpr (requires { table->irecv_consumed; }) {
        if (table->irecv_consumed != nullptr) (void)table->irecv_consumed(comm, 1, request);
      }
    });
  }

 private:
  mutable void* no_profile_ = nullptr;  // what NCCL passes without a profiler: a null handle
};

struct CollProperties {
  int pointer_support = 0;
  size_t max_collective_bytes = kMaxCollBytes;
};

class CollTable
    : public PluginTable<nccl::CollNetV6, nccl::CollNetV7, nccl::CollNetV8, nccl::CollNetV9,
                         nccl::CollNetV10, nccl::CollNetV11, nccl::CollNetV12> {
 public:
  std::optional<CollProperties> properties(int device) const {
    return with([&](const auto* table) -> std::optional<CollProperties> {
      const auto in = ask(table->get_properties, device);
      if (!in) return std::nullopt;
      if constexpr (requires { in->max_collective_bytes; }) {
        return CollProperties{in->pointer_support, in->max_collective_bytes};
      } else {
        return CollProperties{in->pointer_support};
      }
    });
  }
  // Waits for all ranks. When it fails, the listenComm is the plugin's to free.
  Code connect(void** handles, int ranks, int rank, void* listen_comm, void** comm) const {
    return call(SLIME_ENTRY(connect), handles, ranks, rank, listen_comm, comm);
  }
  Code close_coll(void* comm) const { return call(SLIME_ENTRY(close_coll), comm); }
  // NCCL counts an error as no, too (src/transport/coll_net.cc).
  bool supports(nccl::DataType type, nccl::ReduceOp op) const {
    int supported = 0;
    const Code code = call(SLIME_ENTRY(reduce_support), type, op, &supported);
    return code == nccl::kSuccess && supported == 1;
  }
  Code iallreduce(void* comm, void* send, void* receive, size_t count, nccl::DataType type,
                  nccl::ReduceOp op, void* send_handle, void* receive_handle,
                  void** request) const {
    return call(SLIME_ENTRY(iallreduce), comm, send, receive, count, type, op, send_handle,
                receive_handle, request);
  }
};

#undef SLIME_ENTRY

}  // namespace slime::perf
