#include "plugin/announce.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/log.h"
#include "plugin/version.h"

namespace slime::plugin {
namespace {

constexpr char kForbidLl128[] = "^LL128";

std::string describe_device(Device& device, size_t index) {
  const DeviceProperties& properties = device.properties();
  std::string text = "[" + std::to_string(index) + "] " + properties.name + " " +
                     std::to_string(properties.speed_mbps) + " Mb/s:";
  for (const Rail* rail : device.rails()) {
    const RailCaps& caps = rail->caps();
    text += " " + caps.transport + " " + caps.name;
    text += " " + caps.oob_address;
    text += rail == device.rails().back() ? "" : ",";
  }
  return text;
}

bool takes_device_memory(Fabric& fabric) {
  for (size_t i = 0; i < fabric.device_count(); ++i) {
    if (fabric.device(static_cast<int>(i))->properties().takes_device_memory()) return true;
  }
  return false;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text;
}

std::string plural(size_t n, const char* noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

}  // namespace

void announce(Fabric& fabric) {
  std::string devices;
  size_t rails = 0;
  for (size_t i = 0; i < fabric.device_count(); ++i) {
    Device& device = *fabric.device(static_cast<int>(i));
    rails += device.rails().size();
    devices += "; " + describe_device(device, i);
  }
  SLIME_INFO("version %s (commit %s): %s, %s, GPUDirect %s%s", SLIME_VERSION, SLIME_COMMIT,
             plural(fabric.device_count(), "device").c_str(), plural(rails, "rail").c_str(),
             takes_device_memory(fabric) ? "available" : "off (staging in host memory)",
             devices.c_str());
  if (!fabric.notes().empty()) SLIME_INFO("not used: %s", joined(fabric.notes()).c_str());
}

void announce_nothing(const std::string& reason) {
  SLIME_INFO("version %s (commit %s): no devices: %s; NCCL will use another transport",
             SLIME_VERSION, SLIME_COMMIT, reason.c_str());
}

bool allows_protocol(const std::string& proto, const char* name) {
  std::string lower = proto;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const bool named = lower.find(name) != std::string::npos;
  if (lower.find_first_of(":;") != std::string::npos) return named;
  const bool excluding = !lower.empty() && lower[0] == '^';
  return named != excluding;
}

void forbid_ll128_where_unsafe(Fabric& fabric) {
  std::string unsafe;
  for (size_t i = 0; i < fabric.device_count(); ++i) {
    const DeviceProperties& properties = fabric.device(static_cast<int>(i))->properties();
    if (!properties.lines_in_order) unsafe += (unsafe.empty() ? "" : ", ") + properties.name;
  }
  if (unsafe.empty()) return;
  const char* chosen = getenv("NCCL_PROTO");
  if (chosen == nullptr || chosen[0] == '\0') {  // NCCL takes an empty list for none
    setenv("NCCL_PROTO", kForbidLl128, 1);
    SLIME_INFO(
        "NCCL_PROTO set to %s: %s cannot keep the order inside a 128-byte line that the "
        "LL128 protocol needs; set NCCL_PROTO yourself to choose otherwise",
        kForbidLl128, unsafe.c_str());
  } else if (allows_protocol(chosen, "ll128")) {
    SLIME_WARN(
        "NCCL_PROTO=%s allows LL128, but %s cannot keep the order inside a 128-byte line "
        "that LL128 needs: results may be wrong; unset NCCL_PROTO or set it to %s",
        chosen, unsafe.c_str(), kForbidLl128);
  }
}

}  // namespace slime::plugin
