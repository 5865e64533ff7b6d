// The section "Devices" of the report for people.
#include "tools/common/bytes.h"
#include "tools/info/columns.h"
#include "tools/info/report.h"

namespace slime::info {
namespace {

using nlohmann::json;

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// "/sys/devices/.../0000:17:00.0" -> "0000:17:00.0"
std::string pci_of(const json& device) {
  if (!device.at("pciPath").is_string()) return "virtual";
  const std::string path = device.at("pciPath").get<std::string>();
  return "PCI " + path.substr(path.rfind('/') + 1);
}

// "host+cuda"
std::string joined(const json& list) {
  std::string text;
  for (const json& item : list) text += (text.empty() ? "" : "+") + text_of(item);
  return text.empty() ? "none" : text;
}

// The fields that this version of the table has, with NCCL's names.
std::string details_of(const json& device) {
  std::string text = "port " + device.at("port").dump() + ", ptrSupport " +
                     joined(device.at("ptrSupport")) + ", maxComms " +
                     device.at("maxComms").dump() + ", maxRecvs " + device.at("maxRecvs").dump();
  const auto append = [&](std::initializer_list<const char*> names, auto format) {
    for (const char* name : names) {
      if (device.contains(name)) text += std::string(", ") + name + " " + format(device.at(name));
    }
  };
  append({"regIsGlobal", "forceFlush"}, text_of);
  if (device.contains("vProps")) text += "\n       vProps " + joined(device.at("vProps"));
  append({"maxP2pBytes", "maxCollBytes"},
         [](const json& bytes) { return tools::format_bytes(bytes.get<uint64_t>()); });
  append({"maxMultiRequestSize", "railId", "planeId"}, text_of);
  return text;
}

// How many rails have each reason, in their order: "4 rails on 10.0.0.1: driver ena, ..."
void print_reasons(const json& rails, FILE* out) {
  std::vector<std::pair<std::string, size_t>> lines;
  for (const json& rail : rails) {
    const std::string reason = text_of(rail.at("reason"));
    if (reason.empty()) continue;
    const std::string line = text_of(rail.at("address")) + ": " + reason;
    if (lines.empty() || lines.back().first != line) lines.emplace_back(line, 0);
    ++lines.back().second;
  }
  for (const auto& [line, count] : lines) {
    fprintf(out, "       %zu rail%s on %s\n", count, count == 1 ? "" : "s", line.c_str());
  }
}

void print_rails(const json& rails, FILE* out) {
  print_reasons(rails, out);
  Columns columns;
  for (const json& rail : rails) {
    const int node = rail.at("numa_node").get<int>();
    columns.add({"rail " + text_of(rail.at("name")), text_of(rail.at("transport")),
                 text_of(rail.at("address")), rail.at("speed_mbps").dump() + " Mb/s",
                 node < 0 ? "" : "NUMA node " + std::to_string(node),
                 rail.at("send_queue_depth").dump() + " works deep",
                 rail.at("ll128_safe").get<bool>() ? "LL128 safe" : "no LL128"});
  }
  columns.print("       ", out);
}

void print_lines(const char* title, const std::vector<std::string>& lines, FILE* out) {
  for (const std::string& line : lines) fprintf(out, "  %s: %s\n", title, line.c_str());
}

}  // namespace

void print_devices(const DevicesReport& report, FILE* out) {
  const DeviceQuery& query = report.query;
  fprintf(out, "Devices\n");
  if (!report.path.empty()) {
    fprintf(out, "  of %s%s", report.path.c_str(),
            report.would_load ? "" : ", which NCCL would not load");
    if (report.table > 0) {
      fprintf(out, ", %s through ncclNetPlugin_v%d", report.called.c_str(), report.table);
    }
    fprintf(out, "\n");
  }
  if (!report.usable()) {
    fprintf(out, "  none: %s\n",
            query.error.empty() ? "NCCL would use its own transports" : query.error.c_str());
  }
  for (const json& device : query.devices) {
    fprintf(out, "  %3s  %s  %s Mb/s  %g us  %s  guid %s\n", device.at("index").dump().c_str(),
            text_of(device.at("name")).c_str(), device.at("speed_mbps").dump().c_str(),
            device.at("latency_us").get<double>(), pci_of(device).c_str(),
            text_of(device.at("guid")).c_str());
    fprintf(out, "       %s\n", details_of(device).c_str());
    if (device.contains("grouped")) {
      fprintf(out, "       one device: %s\n", text_of(device.at("grouped")).c_str());
    }
    if (device.contains("rails")) print_rails(device.at("rails"), out);
  }
  if (!report.rails_error.empty()) fprintf(out, "  no rails: %s\n", report.rails_error.c_str());
  print_lines("not used", report.skipped, out);
  for (const auto& [name, value] : query.changes) {
    fprintf(out, "  init sets %s=%s\n", name.c_str(), value.c_str());
  }
  print_lines("the plugin warns", query.warnings, out);
  if (report.other_build) {
    fprintf(out, "  that file is of another commit than this slime-info: rails may differ\n");
  }
}

}  // namespace slime::info
