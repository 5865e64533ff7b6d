// What depends on the host and not on the text of a value. The backends and CollNet fail by it when
// they need it; to say it at the start saves the user that run.
#include "base/hmac.h"
#include "base/machine/sysfs.h"
#include "base/net/socket.h"
#include "base/text.h"
#include "settings/settings.h"

namespace slime {
namespace {

// "": the kernel lets this process use it.
std::string why_no_congestion_control(const std::string& name) {
  const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return "";  // not known; a rail says what is wrong with sockets here
  const auto set = set_congestion_control(fd, name);
  if (set) return "";
  const auto known = read_line("/proc/sys/net/ipv4/tcp_available_congestion_control");
  return set.error().what + "; this host has: " + known.value_or("?");
}

}  // namespace

std::vector<std::string> unusable_here(const Settings& settings) {
  std::vector<std::string> warnings;
  const auto warn = [&](const char* name, const std::string& value, const std::string& why) {
    warnings.push_back(std::string(name) + "=\"" + displayed(value, 256) +
                       "\" cannot be used here: " + why);
  };
  if (!settings.switch_key_file.empty()) {
    const auto key = SecretKey::read_file(settings.switch_key_file);
    if (!key) warn("NCCL_SLIME_SWITCH_KEY_FILE", settings.switch_key_file, key.error().what);
  }
  if (!settings.tcp_congestion.empty()) {
    const std::string why = why_no_congestion_control(settings.tcp_congestion);
    if (!why.empty()) warn("NCCL_SLIME_TCP_CONGESTION", settings.tcp_congestion, why);
  }
  return warnings;
}

}  // namespace slime
