#include "base/interfaces/traffic.h"

#include <linux/if_link.h>

#include <cstring>

#include "base/interfaces/netlink.h"

namespace slime {

std::optional<Traffic> traffic_of(unsigned interface_index) {
  std::optional<Traffic> traffic;
  const auto read_counters = [&](int type, std::string_view data) {
    rtnl_link_stats64 counters{};
    if (type != IFLA_STATS64 || data.size() < sizeof counters) return;
    std::memcpy(&counters, data.data(), sizeof counters);
    traffic = Traffic{.sent = counters.tx_bytes, .received = counters.rx_bytes};
  };
  const bool answered =
      netlink::ask_links(interface_index, [&](unsigned, const rtattr* attributes, int bytes) {
        netlink::for_each_attribute(attributes, bytes, read_counters);
      });
  return answered ? traffic : std::nullopt;
}

}  // namespace slime
