#include "transports/tcp/small_paths.h"

#include <netinet/tcp.h>

#include "base/log.h"

namespace slime::tcp {
namespace {

// The kernel repeats a segment at once when a later one has arrived, and then after 0.2 s and 0.6
// s. Where every fifth packet is lost, this happens to less than one of 100 connections.
constexpr int kTimeouts = 2;

}  // namespace

SmallPaths& SmallPaths::of_process() {
  static auto* const paths = new SmallPaths;  // a thread may connect while the process ends
  return *paths;
}

bool SmallPaths::has(const SocketAddress& peer) const {
  const std::lock_guard lock(mutex_);
  return hosts_.contains(peer.host());
}

void SmallPaths::note(const std::string& rail, const SocketAddress& peer, int lost) {
  {
    const std::lock_guard lock(mutex_);
    if (hosts_.size() >= kMost || !hosts_.insert(peer.host()).second) return;
  }
  SLIME_WARN(
      "rail %s: TCP packets with %d bytes of data do not reach %s, and small ones do: a part of "
      "the path has a smaller MTU than both hosts, and no router says so; connections to it send "
      "%d bytes in a packet from now on, which costs throughput; set the MTU of this interface and "
      "the peer's to that of the path (ip link set DEVICE mtu N), or let ICMP through",
      rail.c_str(), lost, peer.host().c_str(), kSmallSegment);
}

int lost_segments(const Fd& fd) {
  tcp_info info{};
  socklen_t bytes = sizeof info;
  if (getsockopt(fd.get(), IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return 0;
  const bool lost = info.tcpi_state == TCP_ESTABLISHED && info.tcpi_unacked > info.tcpi_sacked &&
                    info.tcpi_sacked > 0 && info.tcpi_retransmits >= kTimeouts &&
                    info.tcpi_snd_mss > uint32_t{kSmallSegment};
  return lost ? static_cast<int>(info.tcpi_snd_mss) : 0;
}

}  // namespace slime::tcp
