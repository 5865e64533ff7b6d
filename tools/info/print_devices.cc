#include "tools/common/bytes.h"
#include "tools/info/columns.h"
#include "tools/info/print.h"

namespace slime::info {
namespace {

using nlohmann::json;

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string number(double value) {
  char text[32];
  snprintf(text, sizeof text, "%g", value);
  return text;
}

// "/sys/devices/.../0000:17:00.0" -> "0000:17:00.0"
std::string pci_of(const json& device) {
  if (!device.at("pciPath").is_string()) return "virtual";
  const std::string path = device.at("pciPath").get<std::string>();
  return "PCI " + path.substr(path.rfind('/') + 1);
}

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
  for (const char* flag : {"regIsGlobal", "forceFlush"}) {
    if (device.contains(flag)) text += std::string(", ") + flag + " " + device.at(flag).dump();
  }
  if (device.contains("vProps")) text += "\n       vProps " + joined(device.at("vProps"));
  for (const char* size : {"maxP2pBytes", "maxCollBytes"}) {
    if (device.contains(size)) {
      text += std::string(", ") + size + " " + tools::format_bytes(device.at(size).get<uint64_t>());
    }
  }
  for (const char* number : {"maxMultiRequestSize", "railId", "planeId"}) {
    if (device.contains(number))
      text += std::string(", ") + number + " " + device.at(number).dump();
  }
  return text;
}

// How many rails have each reason, in their order: "4 rails on 10.0.0.1: driver ena, ..."
void print_reasons(const json& rails, FILE* out) {
  std::string line;
  size_t count = 0;
  const auto print = [&] {
    if (count == 0) return;
    fprintf(out, "       %zu rail%s on %s\n", count, count == 1 ? "" : "s", line.c_str());
  };
  for (const json& rail : rails) {
    if (text_of(rail.at("reason")).empty()) continue;
    const std::string next = text_of(rail.at("address")) + ": " + text_of(rail.at("reason"));
    if (next != line) print(), count = 0;
    line = next;
    ++count;
  }
  print();
}

void print_rails(const json& name, const RailsReport& report, FILE* out) {
  Columns columns;
  for (const json& device : report.devices) {
    if (device.at("name") != name) continue;
    print_reasons(device.at("rails"), out);
    for (const json& rail : device.at("rails")) {
      const int node = rail.at("numa_node").get<int>();
      columns.add({"rail " + text_of(rail.at("name")), text_of(rail.at("transport")),
                   text_of(rail.at("address")), rail.at("speed_mbps").dump() + " Mb/s",
                   node < 0 ? "" : "NUMA node " + std::to_string(node),
                   rail.at("send_queue_depth").dump() + " works deep",
                   rail.at("ll128_safe").get<bool>() ? "LL128 safe" : "no LL128"});
    }
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
    if (query.table > 0) {
      fprintf(out, ", %s through ncclNetPlugin_v%d", report.called.c_str(), query.table);
    }
    fprintf(out, "\n");
  }
  if (!query.error.empty())
    fprintf(out, "  none: %s\n", query.error.c_str());
  else if (query.count() == 0)
    fprintf(out, "  none: NCCL would use its own transports\n");
  for (const json& device : query.devices) {
    fprintf(out, "  %3s  %s  %s Mb/s  %s us  %s  guid %s\n", device.at("index").dump().c_str(),
            text_of(device.at("name")).c_str(), device.at("speed_mbps").dump().c_str(),
            number(device.at("latency_us").get<double>()).c_str(), pci_of(device).c_str(),
            text_of(device.at("guid")).c_str());
    fprintf(out, "       %s\n", details_of(device).c_str());
    print_rails(device.at("name"), report.rails, out);
  }
  if (!report.rails.error.empty()) fprintf(out, "  no rails: %s\n", report.rails.error.c_str());
  print_lines("not used", report.rails.skipped, out);
  for (const auto& [name, value] : query.changes.items()) {
    fprintf(out, "  init sets %s=%s\n", name.c_str(), text_of(value).c_str());
  }
  print_lines("the plugin warns", query.warnings, out);
  if (report.other_build) {
    fprintf(out, "  that file is of another commit than this slime-info: rails may differ\n");
  }
}

}  // namespace slime::info
