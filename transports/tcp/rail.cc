#include "transports/tcp/rail.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/interfaces/subnet_path.h"
#include "base/log.h"
#include "settings/times.h"
#include "transports/channel_common.h"
#include "transports/tcp/channel.h"
#include "transports/tcp/socket_count.h"

namespace slime::tcp {

namespace {

// Works per channel: two requests of NCCL_NET_MAX_REQUESTS (32) for each of a few stripes.
constexpr uint32_t kSendQueueDepth = 256;

RailCaps describe(const Interface& interface, const Settings& settings, int index) {
  SocketCount count = count_sockets(interface, settings.rails_per_if);
  const auto rails = static_cast<uint32_t>(count.sockets);
  RailCaps caps;
  caps.name = rails == 1 ? interface.name : interface.name + "." + std::to_string(index);
  caps.transport = "tcp";
  caps.pci_path = interface.pci_path;
  caps.oob_address = interface.address.host();
  caps.reason = std::move(count.reason);
  const std::string path = describe_path(interface);
  if (!path.empty()) caps.reason += (caps.reason.empty() ? "" : "; ") + path;
  caps.guid = interface.guid;
  caps.mtu = interface.mtu;
  caps.subnet = interface.subnet;
  caps.interface = interface.index;
  caps.numa_node = interface.numa_node;
  caps.speed_mbps = std::max(interface.speed_mbps / rails, 1U);  // they share one cable
  caps.send_queue_depth = kSendQueueDepth;
  caps.max_batch = std::min(static_cast<uint32_t>(settings.max_batch), kSendQueueDepth);
  caps.opcodes = opcode_bit(Opcode::kWriteWithImmediate) | opcode_bit(Opcode::kWrite) |
                 opcode_bit(Opcode::kRead);
  caps.max_outstanding_reads = kMaxReads;
  caps.goes_on_after_refusal = true;
  caps.ordered = true;
  caps.lines_in_order = false;  // a CPU copy out of a socket keeps no order inside a line
  caps.arrives_unpolled = false;
  return caps;
}

}  // namespace

ClosingSocket::ClosingSocket(Fd fd) : fd_(std::move(fd)) { ::shutdown(fd_.get(), SHUT_WR); }

// Closing loses nothing when no more input can come, as the kernel goes on sending by itself; or
// when the peer's kernel has acknowledged all output (SIOCOUTQ, tcp(7)), as a reset does not take
// from the peer what its kernel has.
bool ClosingSocket::is_done() {
  constexpr size_t kDiscardBytes = size_t{4} << 20;  // the rest waits for the next call
  // MSG_TRUNC: thrown away inside the kernel (tcp(7)).
  const ssize_t got = ::recv(fd_.get(), nullptr, kDiscardBytes, MSG_TRUNC | MSG_DONTWAIT);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return true;
  int unacknowledged = 0;
  return ::ioctl(fd_.get(), SIOCOUTQ, &unacknowledged) != 0 || unacknowledged == 0;
}

std::unique_ptr<TcpRail> TcpRail::open(const Interface& interface, const Settings& settings,
                                       int index) {
  SocketAddress local = interface.address;
  local.set_port(0);
  return std::unique_ptr<TcpRail>(
      new TcpRail(describe(interface, settings, index), interface, local, settings));
}

Result<MemoryKeys> TcpRail::register_memory(const MemoryRange& range) {
  if (range.kind != MemoryKind::kHost || range.dma_buf >= 0) {
    return fail(make_error(Status::kUnsupported, 0,
                           "rail %s: the kernel's TCP cannot reach device memory (%zu bytes at %p);"
                           " register host memory",
                           caps_.name.c_str(), range.bytes, range.address));
  }
  auto key = regions_.add(range);
  if (!key) return fail(prefixed(caps_, std::move(key.error())));
  return MemoryKeys{.local = *key, .remote = *key};
}

void TcpRail::deregister_memory(const MemoryKeys& keys) { regions_.remove(keys.remote); }

Result<std::unique_ptr<Channel>> TcpRail::open_channel(const ChannelOptions& options) {
  closing_.poll();
  if (auto checked = check_poller(*this, options); !checked)
    return fail(std::move(checked.error()));
  return TcpChannel::open(*this, options);
}

void TcpRail::warn_unmarked(const Error& why) {
  if (warned_unmarked_.exchange(true)) return;
  SLIME_WARN(
      "rail %s: the traffic class cannot be set (%s), so packets go without it; allow it, or unset "
      "NCCL_SLIME_TRAFFIC_CLASS (with NCCL also the communicator's trafficClass)",
      caps_.name.c_str(), why.what.c_str());
}

std::string TcpRail::interface_to_bind(const SocketAddress& peer) {
  if (steady_now_ns() < unbound_until_ns_) return "";
  std::string interface = outlet_.to_bind(peer);
  if (!interface.empty() && !outlet_.may_bind()) {
    warn_unbound(peer, "the kernel does not let this process bind a connection");
    interface.clear();
  }
  return interface;
}

void TcpRail::go_unbound(const SocketAddress& peer) {
  unbound_until_ns_ = steady_now_ns() + times::kUnboundRail;
  warn_unbound(peer, "it does not answer by this interface");
}

void TcpRail::warn_unbound(const SocketAddress& peer, const char* why) {
  if (warned_unbound_.exchange(true)) return;
  SLIME_WARN(
      "rail %s: packets to %s leave by another interface: %s; set net.ipv4.conf.all.arp_ignore=1, "
      "arp_announce=2 and rp_filter=2 on both hosts (IPv4), put the interfaces into subnets of "
      "their own, or route by source address (ip rule add from %s)",
      caps_.name.c_str(), peer.host().c_str(), why, caps_.oob_address.c_str());
}

Result<std::vector<std::unique_ptr<Rail>>> open_tcp_rails(const Settings& settings,
                                                          std::vector<std::string>* notes) {
  auto list = list_interfaces(settings.ifname, variable_of("NCCL_SLIME_IFNAME"),
                              settings.socket_subnet, settings.socket_family);
  if (!list) return fail(std::move(list.error()));
  if (notes) notes->insert(notes->end(), list->notes.begin(), list->notes.end());
  std::vector<std::unique_ptr<Rail>> rails;
  for (const Interface& interface : list->interfaces) {
    const int sockets = count_sockets(interface, settings.rails_per_if).sockets;
    for (int index = 0; index < sockets; ++index) {
      rails.push_back(TcpRail::open(interface, settings, index));
    }
  }
  return rails;
}

}  // namespace slime::tcp
