// What the kernel says of the interfaces of this network namespace.
#include <ifaddrs.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>

#include "base/net/interfaces.h"

namespace slime {
namespace {

using Links = std::map<std::string, LinkFacts>;  // by name
constexpr size_t kAnswerBytes = 64 << 10;        // the kernel sends 32 KiB at most at once
constexpr timeval kPatience = {1, 0};

// visit(type, data) for the attributes in these bytes.
template <typename Visit>
void for_each_attribute(const rtattr* attribute, int bytes, Visit visit) {
  for (; RTA_OK(attribute, bytes); attribute = RTA_NEXT(attribute, bytes)) {
    const auto* const data = static_cast<const char*>(RTA_DATA(attribute));
    visit(attribute->rta_type & NLA_TYPE_MASK, std::string_view(data, RTA_PAYLOAD(attribute)));
  }
}

std::string text_of(std::string_view data) {
  return {data.data(), strnlen(data.data(), data.size())};
}

uint32_t number_of(std::string_view data) {
  uint32_t number = 0;
  if (data.size() == sizeof number) std::memcpy(&number, data.data(), sizeof number);
  return number;
}

std::string mac_of(std::string_view octets) {
  std::string mac;
  for (const char octet : octets) {
    char text[4];
    (void)std::snprintf(text, sizeof text, ":%02x", static_cast<uint8_t>(octet));
    mac += text + (mac.empty() ? 1 : 0);
  }
  return mac;
}

void read_link(const nlmsghdr& header, Links* links) {
  if (header.nlmsg_type != RTM_NEWLINK || header.nlmsg_len < NLMSG_LENGTH(sizeof(ifinfomsg)))
    return;
  const auto* const info = static_cast<const ifinfomsg*>(NLMSG_DATA(&header));
  std::string name;
  LinkFacts link;
  link.index = static_cast<unsigned>(info->ifi_index);
  for_each_attribute(IFLA_RTA(info), static_cast<int>(IFLA_PAYLOAD(&header)),
                     [&](int type, std::string_view data) {
                       if (type == IFLA_IFNAME) name = text_of(data);
                       if (type == IFLA_ADDRESS) link.mac = mac_of(data);
                       if (type == IFLA_MTU) link.mtu = number_of(data);
                       if (type == IFLA_MASTER) link.master = number_of(data);
                       if (type != IFLA_LINKINFO) return;
                       for_each_attribute(reinterpret_cast<const rtattr*>(data.data()),
                                          static_cast<int>(data.size()),
                                          [&](int inner, std::string_view text) {
                                            if (inner == IFLA_INFO_KIND) link.kind = text_of(text);
                                          });
                     });
  (*links)[name] = link;
}

// False: it was the last part.
bool read_part(const char* part, size_t bytes, Links* links) {
  const auto* header = reinterpret_cast<const nlmsghdr*>(part);
  auto left = static_cast<int>(bytes);
  for (; left > 0 && NLMSG_OK(header, static_cast<unsigned>(left));
       header = NLMSG_NEXT(header, left)) {
    if (header->nlmsg_type == NLMSG_DONE || header->nlmsg_type == NLMSG_ERROR) return false;
    read_link(*header, links);
  }
  return true;
}

// rtnetlink(7). Empty, or not all: the kernel does not answer, so that kinds are not known.
Links read_links() {
  Links links;
  const Fd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!fd) return links;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  struct {
    nlmsghdr header{};
    ifinfomsg info{};
  } question;
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = RTM_GETLINK;
  question.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  const auto* const to = reinterpret_cast<const sockaddr*>(&kernel);
  if (::sendto(fd.get(), &question, sizeof question, 0, to, sizeof kernel) < 0) return links;
  const auto answer = std::make_unique<char[]>(kAnswerBytes);
  for (;;) {
    sockaddr_nl from{};
    socklen_t size = sizeof from;
    const ssize_t bytes = ::recvfrom(fd.get(), answer.get(), kAnswerBytes, 0,
                                     reinterpret_cast<sockaddr*>(&from), &size);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return links;
    if (from.nl_pid != 0) continue;  // not of the kernel
    if (!read_part(answer.get(), static_cast<size_t>(bytes), &links)) return links;
  }
}

}  // namespace

Result<std::vector<InterfaceRecord>> interface_records() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return fail(system_error(errno, "getifaddrs"));
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  const Links links = read_links();
  std::vector<InterfaceRecord> records;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    InterfaceRecord record{entry->ifa_name, entry->ifa_flags, std::nullopt, {}};
    const int family = entry->ifa_addr != nullptr ? entry->ifa_addr->sa_family : AF_UNSPEC;
    if (family == AF_INET || family == AF_INET6) {
      const socklen_t bytes = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      if (auto address = SocketAddress::from_sockaddr(entry->ifa_addr, bytes)) {
        record.address = *address;
      }
    }
    const auto link = links.find(record.interface());
    if (link != links.end()) record.link = link->second;
    if (record.link.index == 0) record.link.index = if_nametoindex(record.interface().c_str());
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace slime
