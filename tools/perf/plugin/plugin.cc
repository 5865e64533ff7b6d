#include "tools/perf/plugin/plugin.h"

#include <strings.h>

#include <cstdlib>
#include <utility>

#include "tools/common/plugin_file.h"

namespace slime::perf {
namespace {

std::string value_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr ? value : "";
}

const char* result_name(Code code) {
  static constexpr const char* kNames[] = {
      "ncclSuccess",         "ncclUnhandledCudaError", "ncclSystemError", "ncclInternalError",
      "ncclInvalidArgument", "ncclInvalidUsage",       "ncclRemoteError", "ncclInProgress"};
  static_assert(nccl::kSuccess == 0 && nccl::kInProgress + 1 == std::size(kNames));
  const auto index = static_cast<size_t>(code);
  return index < std::size(kNames) ? kNames[index] : "an unknown result code";
}

const char* text_of(const char* given) { return given != nullptr ? given : ""; }

// NCCL counts an error as no, too (src/transport/coll_net.cc).
bool is_supported(const CollTable& coll, DataType type, RedOp op) {
  int supported = 0;
  return coll.reduce_support(type, nccl_op(op), &supported) == nccl::kSuccess && supported == 1;
}

std::string supported(const CollTable& coll) {
  std::string text;
  for (const RedOp op : {RedOp::kSum, RedOp::kProd, RedOp::kMax, RedOp::kMin}) {
    std::string types;
    for (size_t type = 0; type < kDataTypes; ++type) {
      if (!is_supported(coll, static_cast<DataType>(type), op)) continue;
      types += " " + std::string(kNames<DataType>[type]);
    }
    if (types.empty()) continue;
    text += (text.empty() ? "" : "; ") + std::string(name_of(op)) +
            (op == RedOp::kSum ? " and avg" : "") + " of" + types;
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace

std::string outcome_of(Code code) {
  const std::string warning = last_warning();
  return std::string(result_name(code)) + " (" + std::to_string(code) + ")" +
         (warning.empty() ? "" : "; plugin: " + warning);
}

Error call_error(Status status, const std::string& call, Code code) {
  return {status, code, call + ": " + outcome_of(code)};
}

Result<void> Plugin::load(const std::string& value, int max_api) {
  auto library = tools::open_plugin(value.empty() ? value_of("NCCL_NET_PLUGIN") : value,
                                    tools::library_directory());
  if (!library) return fail(library.error());
  path_ = library->path;
  max_api_ = max_api;
  if (!net_.bind_newest(library->handle, max_api)) {
    const bool has_newer = NetTable().bind_newest(library->handle, NetTable::kNewest);
    return fail(make_error(Status::kConfig, 0,
                           "%s has no ncclNetPlugin_v6 to _v%d%s: NCCL would not take it either",
                           path_.c_str(), max_api, has_newer ? " (only newer ones)" : ""));
  }
  (void)coll_.bind_newest(library->handle, max_api);
  // NCCL_NET filters by the name in the table (src/plugin/net.cc).
  const std::string wanted = value_of("NCCL_NET");
  if (wanted.empty() || strcasecmp(wanted.c_str(), net_.name()) == 0) return {};
  return fail(make_error(
      Status::kConfig, 0,
      "NCCL_NET=%s, but %s calls itself %s: NCCL would not use it; unset NCCL_NET or correct it",
      wanted.c_str(), path_.c_str(), net_.name()));
}

Result<void> Plugin::init(Algorithm algorithm, uint64_t comm_id) {
  const auto init = [&](auto* table, bool* ready, const std::string& what) -> Result<void> {
    const Code code = table->init(plugin_log, comm_id);
    *ready = code == nccl::kSuccess;
    if (*ready) return {};
    return fail(call_error(Status::kSystem, "init of " + what, code));
  };
  auto done = init(&net_, &net_ready_, path_);
  if (!done || algorithm != Algorithm::kCollNet) return done;
  if (coll_.version() > 0) return init(&coll_, &coll_ready_, "the CollNet of " + path_);
  return fail(make_error(Status::kConfig, 0,
                         "%s has no ncclCollNetPlugin_v6 to _v%d: NCCL has no CollNet with it",
                         path_.c_str(), max_api_));
}

Result<void> Plugin::finalize() {
  Result<void> first;
  const auto end = [&first](const auto& table, bool* ready) {
    if (!std::exchange(*ready, false)) return;
    const Code code = table.finalize();
    if (code == nccl::kSuccess || !first) return;
    first = fail(call_error(Status::kSystem, "finalize", code));
  };
  end(coll_, &coll_ready_);
  end(net_, &net_ready_);
  return first;
}

Result<Devices> Plugin::choose_devices(const std::vector<int>& wanted) const {
  int count = 0;
  if (const Code code = net_.devices(&count); code != nccl::kSuccess || count <= 0) {
    const std::string why = why_no_devices();
    return fail(make_error(
        Status::kConfig, code,
        "%s has no network device (%s, %d devices), so NCCL would not use it; it says: %s",
        path_.c_str(), result_name(code), count,
        why.empty() ? "(it does not say why)" : why.c_str()));
  }
  Devices devices{wanted};
  for (int i = 0; wanted.empty() && i < count; ++i) devices.indices.push_back(i);
  for (const int device : devices.indices) {
    tools::DeviceProperties properties;
    if (device >= count || net_.properties(device, &properties) != nccl::kSuccess) {
      return fail(make_error(Status::kConfig, 0, "--net-dev %d: there are devices 0 to %d", device,
                             count - 1));
    }
    if (properties.net_device_type.value_or(nccl::kNetDeviceHost) != nccl::kNetDeviceHost ||
        properties.max_p2p_bytes == size_t{0}) {
      return fail(
          make_error(Status::kUnsupported, 0, "device %d needs a GPU (device offload)", device));
    }
    devices.described.push_back({{"index", device},
                                 {"name", text_of(properties.name)},
                                 {"pci_path", text_of(properties.pci_path)},
                                 {"speed_mbps", properties.speed_mbps},
                                 {"latency_us", properties.latency_us},
                                 {"max_receives", properties.max_receives}});
  }
  return devices;
}

Result<tools::DeviceProperties> Plugin::coll_device(int device) const {
  int count = 0;
  if (const Code code = coll_.devices(&count); code != nccl::kSuccess || count <= 0) {
    const std::string address = value_of("NCCL_SLIME_SWITCH");
    return fail(make_error(
        Status::kConfig, code, "the CollNet of %s has no device (%s): %s", path_.c_str(),
        result_name(code),
        address.empty() ? "NCCL_SLIME_SWITCH is not set; give it host:port of the control channel "
                          "of a switch (slime-switchd)"
                        : ("although NCCL_SLIME_SWITCH is " + address).c_str()));
  }
  tools::DeviceProperties properties;
  if (device >= count || coll_.properties(device, &properties) != nccl::kSuccess) {
    return fail(make_error(Status::kConfig, 0, "--net-dev %d: CollNet has devices 0 to %d", device,
                           count - 1));
  }
  if ((properties.pointer_support & nccl::kPointerHost) != 0 &&
      properties.max_collective_bytes != size_t{0}) {
    return properties;
  }
  return fail(
      make_error(Status::kUnsupported, 0, "CollNet device %d takes no host memory", device));
}

Result<void> check_support(const CollTable& coll, const std::vector<DataType>& types,
                           const std::vector<RedOp>& ops) {
  for (const DataType type : types) {
    for (const RedOp op : ops) {
      if (is_supported(coll, type, op)) continue;
      return fail(make_error(
          Status::kConfig, 0,
          "the CollNet of %s does not reduce %s by %s (NCCL would use a ring); it supports %s",
          coll.name(), name_of(type), name_of(op), supported(coll).c_str()));
    }
  }
  return {};
}

}  // namespace slime::perf
