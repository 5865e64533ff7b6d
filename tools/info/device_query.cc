#include "tools/info/device_query.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "plugin/nccl_net_tables.h"
#include "settings/settings.h"
#include "tools/info/child.h"
#include "tools/info/device_json.h"
#include "tools/info/library.h"

namespace slime::info {
namespace {

using nlohmann::json;

constexpr double kQueryLimitS = 30;
constexpr int kMaxDevices = 4096;  // far beyond NCCL_MAX_NETDEVS; a count beyond it is garbage

// Of the child process, filled by the plugin through its logger.
json logged_warnings = json::array();
json logged_messages = json::array();

[[gnu::format(printf, 5, 6)]] void log_line(nccl::LogLevel level, unsigned long, const char*, int,
                                            const char* format, ...) {
  char text[2048];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  (level <= nccl::kLogWarn ? logged_warnings : logged_messages).push_back(text);
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

json failed(const char* call, int code) {
  return {{"error", std::string(call) + " returned ncclResult_t " + std::to_string(code)}};
}

template <typename Table, typename Properties>
json ask_table(const Table& table) {
  void* context = nullptr;
  if (const int code = initialize(table, &context); code != 0) return failed("init", code);
  int count = 0;
  if (const int code = table.devices(&count); code != 0) return failed("devices", code);
  if (count < 0 || count > kMaxDevices) {
    return {{"error", "devices says there are " + std::to_string(count)}};
  }
  json devices = json::array();
  for (int device = 0; device < count; ++device) {
    Properties properties{};
    const int code = table.get_properties(device, &properties);
    if (code != 0) return failed("getProperties", code);
    devices.push_back(device_json(device, properties));
  }
  if constexpr (requires { table.finalize(context); }) table.finalize(context);
  return {{"devices", devices}};
}

template <typename Table, typename Properties>
json ask(const void* table) {
  return ask_table<Table, Properties>(*static_cast<const Table*>(table));
}

json ask_version(const void* table, int version) {
  using namespace nccl;
  switch (version) {
    case 6:
      return ask<NetV6, PropertiesV6>(table);
    case 7:
      return ask<NetV7, PropertiesV7>(table);
    case 8:
      return ask<NetV8, PropertiesV8>(table);
    case 9:
      return ask<NetV9, PropertiesV9>(table);
    case 10:
      return ask<NetV10, PropertiesV10>(table);
    case 11:
      return ask<NetV11, PropertiesV11>(table);
    default:
      return ask<NetV12, PropertiesV12>(table);
  }
}

// The names that `after` has and `before` has not, or not with that value.
json changes_between(const Environment& before, const Environment& after) {
  json changes = json::object();
  for (const auto& [name, value] : after) {
    const auto old = before.find(name);
    if (old == before.end() || old->second != value) changes[name] = value;
  }
  return changes;
}

// Runs in the child.
json ask_plugin(const std::string& name, int version) {
  void* handle = open_as_nccl(name);
  if (handle == nullptr) return {{"error", last_dl_error()}};
  const std::string symbol = "ncclNetPlugin_v" + std::to_string(version);
  const void* table = dlsym(handle, symbol.c_str());
  if (table == nullptr) return {{"error", name + " has no " + symbol}};
  const Environment before = process_environment();
  json answer = ask_version(table, version);
  answer["changes"] = changes_between(before, process_environment());
  answer["warnings"] = std::move(logged_warnings);
  answer["messages"] = std::move(logged_messages);
  return answer;
}

}  // namespace

DeviceQuery query_devices(const std::string& library, int table) {
  DeviceQuery query;
  query.library = library;
  query.table = table;
  const auto answer = run_in_child([&] { return ask_plugin(library, table); }, kQueryLimitS,
                                   "asking " + library + " for its devices");
  if (!answer) {
    query.error = answer.error().what;
    return query;
  }
  query.error = answer->value("error", "");
  query.devices = answer->value("devices", json::array());
  query.warnings = answer->value("warnings", std::vector<std::string>());
  query.messages = answer->value("messages", std::vector<std::string>());
  query.changes = answer->value("changes", json::object());
  return query;
}

}  // namespace slime::info
