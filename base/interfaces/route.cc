#include "base/interfaces/route.h"

#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <span>

#include "base/interfaces/netlink.h"

namespace slime {
namespace {

// The bytes of an address in a message.
std::span<const uint8_t> in_message(const SocketAddress& address,
                                    const AddressRange::Bytes& bytes) {
  return std::span(bytes).last(address.is_ipv6() ? 16 : 4);
}

struct Question {
  nlmsghdr header{};
  rtmsg route{};
  alignas(4) std::array<char, 2 * RTA_SPACE(16)> attributes{};

  void add(unsigned short type, std::span<const uint8_t> value) {
    const size_t used = NLMSG_ALIGN(header.nlmsg_len) - sizeof header - sizeof route;
    auto* const attribute = reinterpret_cast<rtattr*>(attributes.data() + used);
    attribute->rta_type = type;
    attribute->rta_len = static_cast<unsigned short>(RTA_LENGTH(value.size()));
    std::memcpy(RTA_DATA(attribute), value.data(), value.size());
    header.nlmsg_len =
        static_cast<uint32_t>(NLMSG_ALIGN(header.nlmsg_len) + RTA_SPACE(value.size()));
  }
};

// The interface by which the peer's request to connect came; 0: not known. The kernel keeps it with
// the connection (tcp_v4_syn_recv_sock(), tcp_v6_syn_recv_sock()).
unsigned arrived_by(const Fd& fd, bool ipv6) {
  const int level = ipv6 ? IPPROTO_IPV6 : IPPROTO_IP;
  const int on = 1, off = 0;
  const int wish = ipv6 ? IPV6_RECVPKTINFO : IP_PKTINFO;
  if (::setsockopt(fd.get(), level, wish, &on, sizeof on) != 0) return 0;
  alignas(cmsghdr) std::array<char, 256> buffer{};
  socklen_t size = buffer.size();
  constexpr int kIpv6PacketOptions = 6;  // IPV6_2292PKTOPTIONS, linux/in6.h
  const int got = ::getsockopt(fd.get(), level, ipv6 ? kIpv6PacketOptions : IP_PKTOPTIONS,
                               buffer.data(), &size);
  (void)::setsockopt(fd.get(), level, wish, &off, sizeof off);
  if (got != 0) return 0;
  msghdr message{};
  message.msg_control = buffer.data();
  message.msg_controllen = size;
  for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one)) {
    if (one->cmsg_level != level) continue;
    if (!ipv6 && one->cmsg_type == IP_PKTINFO) {
      in_pktinfo info;
      std::memcpy(&info, CMSG_DATA(one), sizeof info);
      return static_cast<unsigned>(info.ipi_ifindex);
    }
    if (ipv6 && one->cmsg_type == IPV6_PKTINFO) {
      in6_pktinfo info;
      std::memcpy(&info, CMSG_DATA(one), sizeof info);
      return info.ipi6_ifindex;
    }
  }
  return 0;
}

// The address names its interface.
bool is_scoped(const SocketAddress& address) {
  return address.is_ipv6() && address.is_link_local();
}

}  // namespace

std::optional<Route> find_route(const SocketAddress& source, const SocketAddress& peer) {
  if (source.family() != peer.family()) return std::nullopt;
  Question question;
  question.header.nlmsg_len = NLMSG_LENGTH(sizeof question.route);
  question.header.nlmsg_type = RTM_GETROUTE;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  question.route.rtm_family = static_cast<unsigned char>(peer.family());
  const auto peer_bytes = AddressRange::bytes_of(peer), own_bytes = AddressRange::bytes_of(source);
  const auto to = in_message(peer, peer_bytes), from = in_message(source, own_bytes);
  question.route.rtm_dst_len = static_cast<unsigned char>(8 * to.size());
  question.route.rtm_src_len = static_cast<unsigned char>(8 * from.size());
  question.add(RTA_DST, to);
  question.add(RTA_SRC, from);
  std::optional<Route> route;
  const bool answered = netlink::ask(
      std::as_bytes(std::span(&question, 1)).first(question.header.nlmsg_len),
      [&](const nlmsghdr& header) {
        if (header.nlmsg_type != RTM_NEWROUTE || header.nlmsg_len < NLMSG_LENGTH(sizeof(rtmsg))) {
          return;
        }
        const auto* const found = static_cast<const rtmsg*>(NLMSG_DATA(&header));
        route = Route{.unicast = found->rtm_type == RTN_UNICAST};
        netlink::for_each_attribute(RTM_RTA(found), static_cast<int>(RTM_PAYLOAD(&header)),
                                    [&](int type, std::string_view data) {
                                      if (type == RTA_OIF) {
                                        route->interface = netlink::number_of(data);
                                      }
                                    });
      });
  return answered ? route : std::nullopt;
}

bool can_bind_to(const std::string& interface) {
  const Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return fd && bind_to_interface(fd, interface);
}

Outlet::Outlet(const Interface& interface)
    : name_(interface.name),
      index_(interface.index),
      address_(interface.address),
      subnet_(AddressRange::parse(interface.subnet)),
      may_bind_(can_bind_to(interface.name)) {}

std::string Outlet::to_bind(const SocketAddress& peer) const {
  if (index_ == 0 || !subnet_ || !subnet_->has(peer) || is_scoped(peer)) return "";
  const auto route = find_route(address_, peer);
  return route && route->unicast && route->interface != index_ ? name_ : "";
}

void Outlet::keep(const Fd& fd, const SocketAddress& peer) const {
  const std::string name = to_bind(peer);
  if (!name.empty() && arrived_by(fd, peer.is_ipv6()) == index_) (void)bind_to_interface(fd, name);
}

}  // namespace slime
