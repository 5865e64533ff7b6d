// Paths that packets of full size do not pass, though small ones do: somewhere on the way the MTU
// is smaller than at both ends, and nobody says so (ICMP). The hello of a rail is as long as the
// longest packet (wire.h), so that its handshake finds such a path. Connections to that host get
// small segments, both ways, from then on.
//
// State: addresses, kMost at most; it only grows. Threads: any.
#pragma once

#include <cstddef>
#include <mutex>
#include <set>
#include <string>

#include "base/net/socket.h"

namespace slime::tcp {

class SmallPaths {
 public:
  static constexpr size_t kMost = 4096;

  static SmallPaths& of_process();
  bool has(const SocketAddress& peer) const;
  // Segments of `lost` bytes have not reached the peer over this rail, and small ones have. Warns
  // the first time.
  void note(const std::string& rail, const SocketAddress& peer, int lost);

 private:
  mutable std::mutex mutex_;
  std::set<std::string> hosts_;
};

// The length of the segments of a connection, if they are longer than kSmallSegment and one has
// been lost several times in a row while a shorter one, sent later, has arrived (SACK). Otherwise
// 0: a path that is cut loses both. Needs net.ipv4.tcp_sack, which is on by default.
int lost_segments(const Fd& fd);

}  // namespace slime::tcp
