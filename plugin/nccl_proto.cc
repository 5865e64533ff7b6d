#include "plugin/nccl_proto.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/log.h"

namespace slime::plugin {
namespace {

constexpr char kForbidLl128[] = "^LL128";

}  // namespace

const char* set_variable(const char* name) {
  const char* const value = getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
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

void forbid_ll128_where_unsafe(Devices& devices) {
  std::string unsafe;
  for (size_t i = 0; i < devices.device_count(); ++i) {
    const DeviceProperties& properties = devices.device(static_cast<int>(i))->properties();
    if (!properties.lines_in_order) unsafe += (unsafe.empty() ? "" : ", ") + properties.name;
  }
  if (unsafe.empty()) return;
  const char* const chosen = set_variable("NCCL_PROTO");
  if (chosen == nullptr) {
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
