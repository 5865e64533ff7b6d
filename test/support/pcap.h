// Packet captures as tcpdump and wireshark read them: classic pcap, raw IPv4 with UDP inside.
// Reading trusts nothing: a file may be cut short or made to do harm.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/net/socket.h"

namespace slime::test {

struct CapturedPacket {
  uint64_t time_us = 0;
  SocketAddress from, to;  // IPv4
  std::vector<std::byte> payload;
  bool operator==(const CapturedPacket&) const = default;
};

// "10.0.0.1:4000 > 10.0.0.9:48880: a2 01 ...".
std::string text_of(const CapturedPacket& packet);

// One packet as it lies in a capture: headers of IPv4 and UDP with right checksums, then payload.
std::vector<std::byte> ip_packet(const CapturedPacket& packet);
// Null, or what is wrong with it. The time stays as it was.
const char* read_ip_packet(std::span<const std::byte> ip, CapturedPacket* packet);

inline constexpr size_t kMaxCaptureBytes = 16 << 20;

// Checksums of IP and UDP are right. Payloads have at most 65507 bytes.
std::vector<std::byte> write_pcap(std::span<const CapturedPacket> packets);

// Either byte order, micro- or nanoseconds. An error names the packet and what is wrong with it.
Result<std::vector<CapturedPacket>> read_pcap(std::span<const std::byte> file);

}  // namespace slime::test
