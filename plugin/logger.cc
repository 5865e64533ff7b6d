#include "plugin/logger.h"

#include <atomic>

#include "base/log.h"

#if __has_include("slime_version.h")
#include "slime_version.h"
#else
#define SLIME_VERSION "unknown"
#define SLIME_COMMIT "unknown"
#endif

namespace slime::plugin {

const char* const kVersion = SLIME_VERSION;
const char* const kCommit = SLIME_COMMIT;

namespace {

std::atomic<nccl::Logger> g_logger{nullptr};

nccl::LogLevel level_of(log::Level level) {
  if (level == log::Level::kWarn) return nccl::kLogWarn;
  return level == log::Level::kTrace ? nccl::kLogTrace : nccl::kLogInfo;
}

void to_nccl(log::Level level, const char* file, int line, const char* text) {
  const nccl::Logger logger = g_logger.load(std::memory_order_acquire);
  if (logger == nullptr) return;
  // The prefix is how NCCL's own transports mark their lines ("NET/IB : ").
  logger(level_of(level), nccl::kSubsystemInit | nccl::kSubsystemNet, file, line, "NET/SLIME : %s",
         text);
}

std::string describe_device(Device& device, size_t index) {
  const DeviceProperties& properties = device.properties();
  std::string text = "[" + std::to_string(index) + "] " + properties.name + " " +
                     std::to_string(properties.speed_mbps) + " Mb/s:";
  for (const Rail* rail : device.rails()) {
    const RailCaps& caps = rail->caps();
    text += " " + caps.transport + " " + caps.name + " " + caps.oob_address;
    text += rail == device.rails().back() ? "" : ",";
  }
  return properties.reason.empty() ? text : text + " (one device: " + properties.reason + ")";
}

bool takes_device_memory(Devices& devices) {
  for (size_t i = 0; i < devices.device_count(); ++i) {
    if (devices.device(static_cast<int>(i))->properties().takes_device_memory()) return true;
  }
  return false;
}

std::string plural(size_t n, const char* noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

}  // namespace

void set_logger(nccl::Logger logger) {
  if (logger == nullptr) log::set_sink(nullptr);
  g_logger.store(logger, std::memory_order_release);
  if (logger != nullptr) log::set_sink(to_nccl);
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text;
}

void announce(Devices& devices) {
  std::string listed;
  size_t rails = 0;
  for (size_t i = 0; i < devices.device_count(); ++i) {
    Device& device = *devices.device(static_cast<int>(i));
    rails += device.rails().size();
    listed += "; " + describe_device(device, i);
  }
  SLIME_INFO("version %s (commit %s): %s, %s, GPUDirect %s%s", kVersion, kCommit,
             plural(devices.device_count(), "device").c_str(), plural(rails, "rail").c_str(),
             takes_device_memory(devices) ? "available" : "off (staging in host memory)",
             listed.c_str());
  if (!devices.notes().empty()) SLIME_INFO("not used: %s", joined(devices.notes()).c_str());
}

void announce_nothing(const std::string& reason) {
  SLIME_INFO("version %s (commit %s): no devices: %s; NCCL will use another transport", kVersion,
             kCommit, reason.c_str());
}

}  // namespace slime::plugin
