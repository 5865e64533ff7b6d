// A plugin's devices, asked for as NCCL asks, through whichever version of the table it has.
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <iterator>

#include "settings/times.h"
#include "tools/common/net_table.h"
#include "tools/common/plugin_file.h"
#include "tools/info/probe.h"
#include "tools/info/report.h"

namespace slime::info {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DeviceQuery, error, devices, warnings, messages,
                                                changes)

namespace {

using nlohmann::json;

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

// The properties that the version of the table has, with NCCL's names.
json device_json(int index, const tools::DeviceProperties& p) {
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
  const auto add = [&device](const char* key, const auto& value) {
    if (value) device[key] = *value;
  };
  const auto add_flag = [&device](const char* key, std::optional<int> value) {
    if (value) device[key] = *value != 0;
  };
  add("netDeviceType", p.net_device_type);
  add("netDeviceVersion", p.net_device_version);
  add_flag("regIsGlobal", p.registration_is_global);
  add_flag("forceFlush", p.force_flush);
  add("vProps", p.members);
  add("maxP2pBytes", p.max_p2p_bytes);
  add("maxCollBytes", p.max_collective_bytes);
  add("maxMultiRequestSize", p.max_multi_request_size);
  add("railId", p.rail_id);
  add("planeId", p.plane_id);
  return device;
}

// Fills child_answer.devices. Returns what went wrong; empty: nothing.
std::string ask_table(tools::NetTable* table) {
  const auto failed = [](const char* call, int code) {
    return std::string(call) + " returned ncclResult_t " + std::to_string(code);
  };
  if (const int code = table->init(log_line, 1); code != 0) return failed("init", code);
  int count = 0;
  if (const int code = table->devices(&count); code != 0) return failed("devices", code);
  if (count < 0 || count > kMaxDevices) return "devices says there are " + std::to_string(count);
  json devices = json::array();
  for (int device = 0; device < count; ++device) {
    tools::DeviceProperties properties;
    const int code = table->properties(device, &properties);
    if (code != 0) return failed("getProperties", code);
    devices.push_back(device_json(device, properties));
  }
  (void)table->finalize();
  child_answer.devices = std::move(devices);
  return "";
}

// Runs in the child. Variables that init changes are those with another value, or new ones.
DeviceQuery ask_plugin(const std::string& name, int version) {
  DeviceQuery& answer = child_answer;
  void* const handle = tools::open_as_nccl(name);
  tools::NetTable table;
  if (handle == nullptr || !table.bind(handle, version)) {
    answer.error =
        handle == nullptr ? tools::last_dl_error() : name + " has no " + table.symbol(version);
    return answer;
  }
  const Environment before = process_environment();
  answer.error = ask_table(&table);
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
  const auto answer = run_in_child([&] { return ask_plugin(library, table); }, times::kPluginAnswer,
                                   "asking " + library + " for its devices");
  DeviceQuery query;
  if (answer) answer->get_to(query);
  if (!answer) query.error = answer.error().what;
  return query;
}

}  // namespace slime::info
