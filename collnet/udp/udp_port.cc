#include "collnet/udp/udp_port.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.h"

namespace slime {
namespace {

constexpr uint32_t kIpBytes = 20, kIpv6Bytes = 40, kUdpBytes = 8;

Error failed(const char* call, const SocketAddress& peer) {
  const int code = errno;
  Error error = system_error(code, "in-network allreduce: %s for the switch at %s failed", call,
                             peer.to_string().c_str());
  error.status = status_of_errno(code);
  return error;
}

void mark(const Fd& fd, const UdpPortOptions& options) {
  if (options.traffic_class == kNoTrafficClass) return;
  const auto marked = set_traffic_class(fd, options.traffic_class);
  if (marked) return;
  SLIME_WARN(
      "in-network allreduce: the traffic class cannot be set (%s), so packets to the switch go "
      "without it; allow it, or unset NCCL_SLIME_TRAFFIC_CLASS and the communicator's trafficClass",
      marked.error().what.c_str());
}

// Connecting a UDP socket sends nothing: it asks for the route, and so for our address and the MTU.
Result<uint32_t> path_mtu(const UdpPortOptions& options, const SocketAddress& peer,
                          SocketAddress* own) {
  const Fd probe(::socket(peer.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe) return fail(failed("socket", peer));
  if (!options.interface.empty()) (void)bind_to_interface(probe, options.interface);
  if (!options.interface.empty() &&
      ::bind(probe.get(), options.address.data(), options.address.size()) != 0) {
    return fail(failed("bind", peer));
  }
  if (::connect(probe.get(), peer.data(), peer.size()) != 0) return fail(failed("connect", peer));
  auto local = local_address(probe);
  if (!local) return fail(std::move(local.error()));
  *own = *local;
  own->set_port(0);
  int mtu = 0;
  socklen_t size = sizeof mtu;
  const bool ipv6 = peer.is_ipv6();
  if (::getsockopt(probe.get(), ipv6 ? IPPROTO_IPV6 : IPPROTO_IP, ipv6 ? IPV6_MTU : IP_MTU, &mtu,
                   &size) != 0) {
    return fail(failed("getsockopt IP_MTU", peer));
  }
  const uint32_t headers = (ipv6 ? kIpv6Bytes : kIpBytes) + kUdpBytes;
  return static_cast<uint32_t>(mtu) > headers ? static_cast<uint32_t>(mtu) - headers : 0;
}

}  // namespace

Result<std::unique_ptr<UdpPort>> UdpPort::open(const UdpPortOptions& options) {
  std::unique_ptr<UdpPort> port(new UdpPort);
  port->max_packet_bytes_ = UINT32_MAX;
  for (const SocketAddress& peer : options.peers) {
    SocketAddress own;
    auto bytes = path_mtu(options, peer, &own);
    if (!bytes) return fail(std::move(bytes.error()));
    if (&peer == &options.peers.front()) port->own_ = own;
    port->max_packet_bytes_ = std::min(port->max_packet_bytes_, *bytes);
  }
  port->interface_ = options.interface;
  port->fd_ =
      Fd(::socket(port->own_.family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP));
  if (!port->fd_) return fail(failed("socket", options.peers.front()));
  if (!options.interface.empty()) (void)bind_to_interface(port->fd_, options.interface);
  if (auto taken = bind_within(port->fd_, port->own_, options.ports); !taken) {
    return fail(std::move(taken.error()));
  }
  mark(port->fd_, options);
  auto bound = local_address(port->fd_);
  if (!bound) return fail(std::move(bound.error()));
  port->own_ = *bound;
  if (options.buffer_bytes > 0) {
    auto granted = set_buffers(port->fd_, options.buffer_bytes);
    if (!granted) return fail(std::move(granted.error()));
  }
  port->outgoing_ = std::make_unique<std::byte[]>(kMaxDatagram);
  port->incoming_ = std::make_unique<std::byte[]>(kBatch * kPacketBytes);
  for (size_t i = 0; i < kBatch; ++i) {
    port->vectors_[i] = {&port->incoming_[i * kPacketBytes], kPacketBytes};
  }
  return port;
}

void UdpPort::send(const SocketAddress& to, std::span<const std::byte> datagram) {
  const bool fits = buffered_bytes_ > 0 && datagram.size() == segment_bytes_ &&
                    buffered_bytes_ + datagram.size() <= kMaxDatagram &&
                    buffered_bytes_ < kMaxSegments * segment_bytes_ && to == to_;
  if (!fits) flush();
  to_ = to;
  segment_bytes_ = datagram.size();
  std::memcpy(&outgoing_[buffered_bytes_], datagram.data(), datagram.size());
  buffered_bytes_ += datagram.size();
}

void UdpPort::flush() {
  if (buffered_bytes_ == 0) return;
  send_buffer(segment_bytes_);
  buffered_bytes_ = 0;
}

// With UDP_SEGMENT, where the kernel and the path take it; some virtual devices refuse it, and then
// all later packets go by sendmmsg.
void UdpPort::send_buffer(size_t segment_bytes) {
  iovec vector{outgoing_.get(), buffered_bytes_};
  msghdr message{};
  message.msg_name = const_cast<sockaddr*>(to_.data());
  message.msg_namelen = to_.size();
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  const bool many = buffered_bytes_ > segment_bytes;
  if (many && !segments_) return send_one_by_one(message, segment_bytes);
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(uint16_t))] = {};
  if (many) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_UDP;
    header->cmsg_type = UDP_SEGMENT;
    header->cmsg_len = CMSG_LEN(sizeof(uint16_t));
    const auto size = static_cast<uint16_t>(segment_bytes);
    std::memcpy(CMSG_DATA(header), &size, sizeof size);
  }
  ++counters_.send_calls;
  if (::sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return;
  if (many && refuses_segments(errno)) {
    segments_ = false;
    message.msg_control = nullptr;
    message.msg_controllen = 0;
    return send_one_by_one(message, segment_bytes);
  }
  counters_.send_drops += (buffered_bytes_ + segment_bytes - 1) / segment_bytes;
}

void UdpPort::send_one_by_one(msghdr message, size_t segment_bytes) {
  std::array<mmsghdr, kMaxSegments> messages{};
  std::array<iovec, kMaxSegments> vectors{};
  size_t count = 0;
  for (size_t at = 0; at < buffered_bytes_; at += segment_bytes, ++count) {
    vectors[count] = {&outgoing_[at], segment_bytes};
    messages[count].msg_hdr = message;
    messages[count].msg_hdr.msg_iov = &vectors[count];
  }
  ++counters_.send_calls;
  const int sent = ::sendmmsg(fd_.get(), messages.data(), static_cast<unsigned>(count),
                              MSG_DONTWAIT | MSG_NOSIGNAL);
  counters_.send_drops += count - static_cast<size_t>(sent < 0 ? 0 : sent);
}

// The source of a packet is compared with few addresses, so a search is enough. Shards of a switch
// are ports that follow each other.
bool UdpPort::is_known(const SocketAddress& from) const {
  for (const ShardPorts& shards : switches_) {
    SocketAddress base = from;
    base.set_port(shards.first.port());
    const uint32_t shard = static_cast<uint32_t>(from.port()) - shards.first.port();
    if (shard < shards.count && base == shards.first) return true;
  }
  return std::find(ranks_.begin(), ranks_.end(), from) != ranks_.end();
}

bool UdpPort::receive(DatagramUser& user, uint64_t now_ns) {
  for (size_t i = 0; i < kBatch; ++i) {
    msghdr& header = messages_[i].msg_hdr;
    header.msg_name = &sources_[i];
    header.msg_namelen = sizeof sources_[i];
    header.msg_iov = &vectors_[i];
    header.msg_iovlen = 1;
  }
  ++counters_.receive_calls;
  const int count = ::recvmmsg(fd_.get(), messages_.data(), kBatch, MSG_DONTWAIT, nullptr);
  // Errors here are those of packets sent before (ICMP); the time-out takes care of them.
  for (int i = 0; i < count; ++i) {
    const mmsghdr& message = messages_[static_cast<size_t>(i)];
    const auto from = SocketAddress::from_sockaddr(
        static_cast<const sockaddr*>(message.msg_hdr.msg_name), message.msg_hdr.msg_namelen);
    if (!from || !is_known(*from) || (message.msg_hdr.msg_flags & MSG_TRUNC) != 0) {
      ++counters_.strangers;
      continue;
    }
    const std::byte* const bytes = &incoming_[static_cast<size_t>(i) * kPacketBytes];
    user.on_datagram({bytes, message.msg_len}, *from, now_ns);
  }
  return count > 0;
}

}  // namespace slime
