#include "test/p4/wire.h"

#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "switch/p4driver/options.h"

namespace slime::p4 {
namespace {

using Bytes = std::vector<std::byte>;

constexpr int kPatienceMs = 5000, kBufferBytes = 4 << 20;
constexpr size_t kEthernet = 14, kArp = 28;

void put(Bytes* to, uint64_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) to->push_back(static_cast<std::byte>(value >> (8 * i)));
}

uint64_t get(std::span<const std::byte> from, size_t at, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value = value << 8 | std::to_integer<uint64_t>(from[at + i]);
  return value;
}

Bytes ethernet(uint64_t destination, uint64_t source, uint16_t type) {
  Bytes frame;
  put(&frame, destination, 6);
  put(&frame, source, 6);
  put(&frame, type, 2);
  return frame;
}

bool send_all(const Fd& fd, const Bytes& frame) {
  return ::send(fd.get(), frame.data(), frame.size(), 0) == static_cast<ssize_t>(frame.size());
}

// Everything that the switch sends has right lengths, a right checksum and the MACs of both ends.
Result<test::CapturedPacket> udp_packet(std::span<const std::byte> frame) {
  const auto wrong = [](const char* what) {
    return fail(make_error(Status::kRemote, 0, "the switch sent a wrong packet: %s", what));
  };
  test::CapturedPacket packet;
  if (const char* why = test::read_ip_packet(frame.subspan(kEthernet), &packet)) return wrong(why);
  if (get(frame, 6, 6) != kSwitchMac) return wrong("its source MAC is not the switch's");
  if (get(frame, 0, 6) != mac_of(packet.to)) return wrong("its MAC is not the receiver's");
  return packet;
}

}  // namespace

uint64_t mac_of(const SocketAddress& host) { return 0x0201ull << 32 | net::ipv4_of(host); }

Result<Wire> Wire::open(const std::string& interface, const SocketAddress& of_switch) {
  Fd fd(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL)));
  if (!fd) return fail(system_error(errno, "a packet socket on %s", interface.c_str()));
  sockaddr_ll name{};
  name.sll_family = AF_PACKET;
  name.sll_protocol = htons(ETH_P_ALL);
  name.sll_ifindex = static_cast<int>(if_nametoindex(interface.c_str()));
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&name), sizeof name) != 0) {
    return fail(system_error(errno, "bind a packet socket to %s", interface.c_str()));
  }
  (void)setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &kBufferBytes, sizeof kBufferBytes);
  return Wire(std::move(fd), of_switch);
}

bool Wire::send(const test::CapturedPacket& packet) {
  Bytes frame = ethernet(kSwitchMac, mac_of(packet.from), ETHERTYPE_IP);
  const Bytes ip = test::ip_packet(packet);
  frame.insert(frame.end(), ip.begin(), ip.end());
  return send_all(fd_, frame);
}

bool Wire::send_marker(uint32_t number) {
  const uint64_t mac = 0x0202ull << 32 | number;
  Bytes frame = ethernet(0xffffffffffff, mac, ETHERTYPE_ARP);
  put(&frame, 0x000108000604, 6);  // Ethernet and IPv4 (RFC 826)
  put(&frame, 1, 2);               // a request
  put(&frame, mac, 6);
  put(&frame, number, 4);
  put(&frame, 0, 6);
  put(&frame, net::ipv4_of(switch_), 4);
  return send_all(fd_, frame);
}

Result<std::vector<test::CapturedPacket>> Wire::receive_until(uint32_t number) {
  std::vector<test::CapturedPacket> packets;
  Bytes room(65536);
  for (;;) {
    pollfd ready{fd_.get(), POLLIN, 0};
    if (poll(&ready, 1, kPatienceMs) != 1) {
      return fail(make_error(Status::kTimeout, 0, "the switch is silent"));
    }
    sockaddr_ll from{};
    socklen_t from_bytes = sizeof from;
    const ssize_t got = ::recvfrom(fd_.get(), room.data(), room.size(), MSG_DONTWAIT,
                                   reinterpret_cast<sockaddr*>(&from), &from_bytes);
    if (got < static_cast<ssize_t>(kEthernet) || from.sll_pkttype == PACKET_OUTGOING) continue;
    const auto frame = std::span<const std::byte>(room).first(static_cast<size_t>(got));
    const uint64_t type = get(frame, 12, 2);
    if (type == ETHERTYPE_ARP && frame.size() >= kEthernet + kArp && get(frame, 20, 2) == 2) {
      if (get(frame, kEthernet + 24, 4) != number) continue;
      if (get(frame, 22, 6) == kSwitchMac && get(frame, 28, 4) == net::ipv4_of(switch_))
        return packets;
      return fail(make_error(Status::kRemote, 0, "a wrong answer to ARP"));
    }
    if (type != ETHERTYPE_IP || get(frame, kEthernet + 9, 1) != IPPROTO_UDP) continue;
    auto packet = udp_packet(frame);
    if (!packet) return fail(std::move(packet.error()));
    packets.push_back(std::move(*packet));
  }
}

}  // namespace slime::p4
