// Packet captures as tcpdump and wireshark read them: classic pcap, raw IPv4 with UDP inside.
// Reading trusts nothing: a file may be cut short or made to do harm.
#pragma once

#include <slime/result.h>
#include <slime/socket.h>

#include <span>
#include <vector>

namespace slime::test {

struct CapturedPacket {
  uint64_t time_us = 0;
  SocketAddress from, to;  // IPv4
  std::vector<std::byte> payload;
  bool operator==(const CapturedPacket&) const = default;
};

inline constexpr size_t kMaxCaptureBytes = 16 << 20;

// Checksums of IP and UDP are right. Payloads have at most 65507 bytes.
std::vector<std::byte> write_pcap(std::span<const CapturedPacket> packets);

// Either byte order, micro- or nanoseconds. An error names the packet and what is wrong with it.
Result<std::vector<CapturedPacket>> read_pcap(std::span<const std::byte> file);

}  // namespace slime::test
