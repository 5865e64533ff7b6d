#include "base/interfaces/traffic.h"

#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include <cstring>
#include <span>

#include "base/interfaces/netlink.h"

namespace slime {

std::optional<Traffic> traffic_of(unsigned interface_index) {
  struct {
    nlmsghdr header{};
    ifinfomsg info{};
  } question;
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = RTM_GETLINK;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  question.info.ifi_index = static_cast<int>(interface_index);
  std::optional<Traffic> traffic;
  const auto read_counters = [&](int type, std::string_view data) {
    rtnl_link_stats64 counters{};
    if (type != IFLA_STATS64 || data.size() < sizeof counters) return;
    std::memcpy(&counters, data.data(), sizeof counters);
    traffic = Traffic{.sent = counters.tx_bytes, .received = counters.rx_bytes};
  };
  const bool answered =
      netlink::ask(std::as_bytes(std::span(&question, 1)), [&](const nlmsghdr& header) {
        if (header.nlmsg_type != RTM_NEWLINK ||
            header.nlmsg_len < NLMSG_LENGTH(sizeof(ifinfomsg))) {
          return;
        }
        const auto* const info = static_cast<const ifinfomsg*>(NLMSG_DATA(&header));
        netlink::for_each_attribute(IFLA_RTA(info), static_cast<int>(IFLA_PAYLOAD(&header)),
                                    read_counters);
      });
  return answered ? traffic : std::nullopt;
}

}  // namespace slime
