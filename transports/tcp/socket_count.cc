#include "transports/tcp/socket_count.h"

#include <algorithm>

namespace slime::tcp {

namespace {

// What one flow gets through NICs of a driver, and how many sockets there are at most.
struct FlowRule {
  const char* driver;
  uint32_t flow_mbps;
  int most;
  int where_speed_unknown;
};

// 10 Gbit/s per flow of the para-virtual ones gives gve's most common 32 Gbit/s the 4 sockets that
// NCCL takes. ena does not tell its speed on most instances; with the placement unknown, too, the
// lower of AWS's two caps is assumed.
constexpr FlowRule kRules[] = {
    {"ena", 5000, kMostSockets, kMostSockets}, {"gve", 10000, kMostSockets, 4},
    {"gvnic", 10000, kMostSockets, 4},         {"virtio_net", 10000, kMostSockets, 4},
    {"hv_netvsc", 10000, kMostSockets, 4},     {"mana", 10000, kMostSockets, 4},
    {"bonding", 10000, kMostSockets, 2},
};
constexpr FlowRule kPlainNic = {nullptr, 25000, 4, 1};

const FlowRule& rule_for(const std::string& driver) {
  const auto* const rule =
      std::ranges::find_if(kRules, [&](const FlowRule& r) { return driver == r.driver; });
  return rule != std::end(kRules) ? *rule : kPlainNic;
}

}  // namespace

SocketCount count_sockets(const Interface& interface, int setting) {
  if (setting > 0) return {setting, "NCCL_SLIME_RAILS_PER_IF"};
  if (interface.loopback) return {1, "loopback"};
  if (interface.driver.empty()) return {1, "no driver in /sys: virtual"};
  const FlowRule& rule = rule_for(interface.driver);
  const std::string who = "driver " + interface.driver;
  if (!interface.speed_known) return {rule.where_speed_unknown, who + ", speed unknown"};
  const uint64_t wanted = (uint64_t{interface.speed_mbps} + rule.flow_mbps - 1) / rule.flow_mbps;
  return {static_cast<int>(std::clamp<uint64_t>(wanted, 1, static_cast<uint64_t>(rule.most))),
          who + ", " + std::to_string(interface.speed_mbps) + " Mb/s: one per " +
              std::to_string(rule.flow_mbps) + " Mb/s, " + std::to_string(rule.most) + " at most"};
}

}  // namespace slime::tcp
