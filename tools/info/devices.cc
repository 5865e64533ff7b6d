// A plugin's devices, asked for as NCCL asks, through whichever version of the table it has.
#include <dlfcn.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <iterator>

#include "plugin/abi/net_tables.h"
#include "tools/info/probe.h"
#include "tools/info/report.h"

namespace slime::info {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DeviceQuery, error, devices, warnings, messages,
                                                changes)

namespace {

using nlohmann::json;

constexpr double kQueryLimitS = 30;
constexpr int kMaxDevices = 4096;  // far beyond NCCL_MAX_NETDEVS; a count beyond it is garbage

// Of the child process; the plugin's logger appends to it.
DeviceQuery child_answer;

[[gnu::format(printf, 5, 6)]] void log_line(nccl::LogLevel level, unsigned long, const char*, int,
                                            const char* format, ...) {
  char text[2048];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  (level <= nccl::kLogWarn ? child_answer.warnings : child_answer.messages).emplace_back(text);
}

json pointer_kinds(int support) {
  json kinds = json::array();
  if (support & nccl::kPointerHost) kinds.push_back("host");
  if (support & nccl::kPointerCuda) kinds.push_back("cuda");
  if (support & nccl::kPointerDmaBuf) kinds.push_back("dmabuf");
  return kinds;
}

// ncclNetProperties of any version: the fields that it has, with NCCL's names.
template <typename Properties>
json device_json(int index, const Properties& p) {
  const auto text = [](const char* value) { return value != nullptr ? json(value) : json(); };
  json device = {{"index", index},
                 {"name", text(p.name)},
                 {"pciPath", text(p.pci_path)},
                 {"guid", hex(p.guid)},
                 {"ptrSupport", pointer_kinds(p.pointer_support)},
                 {"speed_mbps", p.speed_mbps},
                 {"port", p.port},
                 {"latency_us", p.latency_us},
                 {"maxComms", p.max_comms},
                 {"maxRecvs", p.max_receives}};
  if constexpr (requires { p.net_device_type; }) {
    device["netDeviceType"] = static_cast<int>(p.net_device_type);
    device["netDeviceVersion"] = p.net_device_version;
  }
  if constexpr (requires { p.registration_is_global; }) {
    device["regIsGlobal"] = p.registration_is_global != 0;
  }
  if constexpr (requires { p.force_flush; }) device["forceFlush"] = p.force_flush != 0;
  if constexpr (requires { p.virtual_device; }) {
    const auto& [count, members] = p.virtual_device;
    const int known = std::clamp(count, 0, static_cast<int>(std::size(members)));
    device["vProps"] = std::vector<int>(members, members + known);
    device["maxP2pBytes"] = p.max_p2p_bytes;
    device["maxCollBytes"] = p.max_collective_bytes;
  }
  if constexpr (requires { p.max_multi_request_size; }) {
    device["maxMultiRequestSize"] = p.max_multi_request_size;
  }
  if constexpr (requires { p.rail_id; }) {
    device["railId"] = p.rail_id;
    device["planeId"] = p.plane_id;
  }
  return device;
}

template <typename Table>
nccl::ResultCode initialize(const Table& table, void** context) {
  constexpr nccl::NetCommConfig kConfig{nccl::kTrafficClassUndefined};
  if constexpr (requires { table.init(context, uint64_t{}, &kConfig, log_line, nullptr); }) {
    return table.init(context, 1, &kConfig, log_line, nullptr);
  } else if constexpr (requires { table.init(log_line, nullptr); }) {
    return table.init(log_line, nullptr);
  } else {
    return table.init(log_line);
  }
}

// Fills child_answer.devices. Returns what went wrong; empty: nothing.
template <typename Table, typename Properties>
std::string ask_table(const void* symbol) {
  const Table& table = *static_cast<const Table*>(symbol);
  const auto failed = [](const char* call, int code) {
    return std::string(call) + " returned ncclResult_t " + std::to_string(code);
  };
  void* context = nullptr;
  if (const int code = initialize(table, &context); code != 0) return failed("init", code);
  int count = 0;
  if (const int code = table.devices(&count); code != 0) return failed("devices", code);
  if (count < 0 || count > kMaxDevices) return "devices says there are " + std::to_string(count);
  json devices = json::array();
  for (int device = 0; device < count; ++device) {
    Properties properties{};
    const int code = table.get_properties(device, &properties);
    if (code != 0) return failed("getProperties", code);
    devices.push_back(device_json(device, properties));
  }
  if constexpr (requires { table.finalize(context); }) table.finalize(context);
  child_answer.devices = std::move(devices);
  return "";
}

constexpr std::string (*kAskTable[])(const void*) = {
    // from kOldestQueried to kNewestQueried
    ask_table<nccl::NetV6, nccl::PropertiesV6>,   ask_table<nccl::NetV7, nccl::PropertiesV7>,
    ask_table<nccl::NetV8, nccl::PropertiesV8>,   ask_table<nccl::NetV9, nccl::PropertiesV9>,
    ask_table<nccl::NetV10, nccl::PropertiesV10>, ask_table<nccl::NetV11, nccl::PropertiesV11>,
    ask_table<nccl::NetV12, nccl::PropertiesV12>,
};
static_assert(std::size(kAskTable) == kNewestQueried - kOldestQueried + 1);

// Runs in the child. Variables that init changes are those with another value, or new ones.
DeviceQuery ask_plugin(const std::string& name, int version) {
  DeviceQuery& answer = child_answer;
  void* const handle = open_as_nccl(name);
  const std::string symbol = "ncclNetPlugin_v" + std::to_string(version);
  const void* const table = handle != nullptr ? dlsym(handle, symbol.c_str()) : nullptr;
  if (table == nullptr) {
    answer.error = handle == nullptr ? last_dl_error() : name + " has no " + symbol;
    return answer;
  }
  const Environment before = process_environment();
  answer.error = kAskTable[version - kOldestQueried](table);
  std::ranges::set_difference(process_environment(), before,
                              std::inserter(answer.changes, answer.changes.end()));
  return answer;
}

}  // namespace

std::string hex(uint64_t number) {
  char text[24];
  snprintf(text, sizeof text, "0x%016llx", static_cast<unsigned long long>(number));
  return text;
}

DeviceQuery query_devices(const std::string& library, int table) {
  const auto answer = run_in_child([&] { return ask_plugin(library, table); }, kQueryLimitS,
                                   "asking " + library + " for its devices");
  DeviceQuery query;
  if (answer) answer->get_to(query);
  if (!answer) query.error = answer.error().what;
  return query;
}

}  // namespace slime::info
