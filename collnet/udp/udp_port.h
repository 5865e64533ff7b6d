// A worker's UDP socket: many packets per system call both ways.
//
// What is sent waits in a buffer, side by side, until flush(): packets of one size to one port
// leave with one sendmsg, which the kernel cuts up (UDP_SEGMENT, udp(7), Linux 4.18) where it can.
// The buffer is flushed by itself where the next packet does not fit in: another size or
// destination, or too many. What the kernel refuses is dropped and counted; the worker sends it
// again.
//
// States: the buffer is empty (buffered_bytes_ is 0), or has packets that wait for flush(). The
// kernel takes UDP_SEGMENT, until it has refused it once (segments_); then packets go by sendmmsg
// for good. Invariant: what is buffered is of one size and goes to one address.
//
// Thread rules: one thread. Nothing is allocated after open().
#pragma once

#include <sys/uio.h>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/net/port_range.h"
#include "base/net/socket.h"
#include "message/comm.h"
#include "switch/core/counters.h"
#include "switch/protocol/sap.h"

namespace slime {

struct UdpPortOptions {
  // Switches, one at least: the route to the first decides which address is ours, the narrowest of
  // all how large a packet may be.
  std::vector<SocketAddress> peers;
  uint64_t buffer_bytes = 0;  // of the socket, each way; 0: the system's default
  std::string interface =
      {};  // packets leave over it, where SO_BINDTODEVICE works; empty: as routed
  SocketAddress address = {};  // ours, with an interface
  int traffic_class = kNoTrafficClass;
  PortRange ports = {};
};

// X(name, help)
#define SLIME_UDP_COUNTERS(X)                                              \
  X(send_calls, "system calls that sent packets")                          \
  X(receive_calls, "system calls that received packets")                   \
  X(strangers, "datagrams that came from neither the switch nor a member") \
  X(send_drops, "packets that the kernel refused: they are sent again")

SLIME_DECLARE_TOTALS(UdpCounters, SLIME_UDP_COUNTERS)

// Where a switch takes packets: shard i at the i-th port from that of shard 0.
struct ShardPorts {
  SocketAddress first;
  uint32_t count = 0;
  bool operator==(const ShardPorts&) const = default;
};

// Receives the datagrams of a port.
class DatagramUser {
 public:
  virtual ~DatagramUser() = default;
  virtual void on_datagram(std::span<const std::byte> datagram, const SocketAddress& from,
                           uint64_t now_ns) = 0;
};

class UdpPort final {
 public:
  static Result<std::unique_ptr<UdpPort>> open(const UdpPortOptions& options);

  const SocketAddress& address() const { return own_; }
  const std::string& interface() const { return interface_; }
  // Of the narrowest path to a peer: the most that a packet may have, headers of IP and UDP not
  // counted.
  uint32_t max_packet_bytes() const { return max_packet_bytes_; }
  // Packets are taken from these only: the shards of switches, and the other members.
  void set_switches(std::vector<ShardPorts> switches) { switches_ = std::move(switches); }
  void set_ranks(std::vector<SocketAddress> ranks) { ranks_ = std::move(ranks); }

  void send(const SocketAddress& to, std::span<const std::byte> datagram);
  void flush();
  // Hands over at most a batch. False: there was nothing.
  bool receive(DatagramUser& user, uint64_t now_ns);
  const UdpCounters& counters() const { return counters_; }

 private:
  static constexpr size_t kBatch = 32;
  static constexpr size_t kMaxSegments = 64;      // UDP_MAX_SEGMENTS, linux/udp.h
  static constexpr size_t kMaxDatagram = 65'507;  // what one sendmsg may carry: 65,535 - 20 - 8
  static constexpr size_t kPacketBytes = (sap::kMaxPacketBytes + 63) / 64 * 64;

  UdpPort() = default;
  bool is_known(const SocketAddress& from) const;
  void send_buffer(size_t segment_bytes);
  void send_one_by_one(msghdr message, size_t segment_bytes);

  Fd fd_;
  SocketAddress own_;
  std::string interface_;
  std::vector<ShardPorts> switches_;
  std::vector<SocketAddress> ranks_;
  uint32_t max_packet_bytes_ = 0;
  bool segments_ = true;  // the kernel takes UDP_SEGMENT on this path

  SocketAddress to_;           // where the buffered packets go
  size_t segment_bytes_ = 0;   // size of each
  size_t buffered_bytes_ = 0;  // 0: nothing is buffered
  std::unique_ptr<std::byte[]> outgoing_;
  std::unique_ptr<std::byte[]> incoming_;
  std::array<mmsghdr, kBatch> messages_{};
  std::array<iovec, kBatch> vectors_{};
  std::array<sockaddr_in6, kBatch> sources_{};
  UdpCounters counters_;
};

}  // namespace slime
