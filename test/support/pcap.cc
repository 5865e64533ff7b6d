#include "test/support/pcap.h"

#include <cstdio>
#include <cstring>

namespace slime::test {
namespace {

// Facts: pcap-savefile(5), RFC 791, RFC 768.
constexpr uint32_t kMicroseconds = 0xa1b2c3d4, kNanoseconds = 0xa1b23c4d;
constexpr uint32_t kLinkTypeRaw = 101, kSnapLength = 65535;
constexpr size_t kFileHeader = 24, kRecordHeader = 16, kIpHeader = 20, kUdpHeader = 8;
constexpr uint8_t kUdpProtocol = 17;

using Bytes = std::span<const std::byte>;

uint32_t big16(Bytes from, size_t at) {
  return std::to_integer<uint32_t>(from[at]) << 8 | std::to_integer<uint32_t>(from[at + 1]);
}
uint32_t little32(Bytes from, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value |= std::to_integer<uint32_t>(from[at + i]) << 8 * i;
  return value;
}

void put_big16(std::vector<std::byte>* to, uint32_t value) {
  to->push_back(static_cast<std::byte>(value >> 8));
  to->push_back(static_cast<std::byte>(value));
}
void put_little32(std::vector<std::byte>* to, uint32_t value) {
  for (int i = 0; i < 4; ++i) to->push_back(static_cast<std::byte>(value >> 8 * i));
}

// RFC 1071: the sum of 16-bit words with the carries added in, turned.
uint32_t checksum(Bytes bytes, uint32_t sum = 0) {
  for (size_t at = 0; at < bytes.size(); at += 2) {
    const bool whole = at + 1 < bytes.size();
    sum += whole ? big16(bytes, at) : std::to_integer<uint32_t>(bytes[at]) << 8;
  }
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return ~sum & 0xffff;
}

void put_address(std::vector<std::byte>* to, const SocketAddress& address) {
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(address.data());
  const auto* bytes = reinterpret_cast<const std::byte*>(&v4->sin_addr);
  to->insert(to->end(), bytes, bytes + 4);
}

SocketAddress address_at(Bytes packet, size_t at, uint32_t port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  std::memcpy(&v4.sin_addr, packet.data() + at, 4);
  v4.sin_port = htons(static_cast<uint16_t>(port));
  return *SocketAddress::from_sockaddr(reinterpret_cast<const sockaddr*>(&v4), sizeof v4);
}

// Sets the 16 bits at `at`, which were zero.
void set_checksum(std::vector<std::byte>* packet, size_t at, uint32_t value) {
  (*packet)[at] = static_cast<std::byte>(value >> 8);
  (*packet)[at + 1] = static_cast<std::byte>(value);
}

// Of a UDP datagram with its pseudo header: addresses, protocol, length.
uint32_t udp_checksum(Bytes packet) {
  const auto length = static_cast<uint32_t>(packet.size() - kIpHeader);
  uint32_t sum = kUdpProtocol + length;
  for (size_t at = 12; at < kIpHeader; at += 2) sum += big16(packet, at);
  const uint32_t value = checksum(packet.subspan(kIpHeader), sum);
  return value == 0 ? 0xffff : value;
}

class PcapReader {
 public:
  explicit PcapReader(Bytes file) : file_(file) {}

  Result<std::vector<CapturedPacket>> read() {
    if (const char* why = file_header()) return bad(why);
    std::vector<CapturedPacket> packets;
    while (!file_.empty()) {
      ++number_;
      CapturedPacket packet;
      if (const char* why = record(&packet)) return bad(why);
      packets.push_back(std::move(packet));
    }
    return packets;
  }

 private:
  tl::unexpected<Error> bad(const char* why) const {
    return fail(make_error(Status::kInvalid, 0, "capture, packet %zu: %s", number_, why));
  }
  uint32_t word(Bytes from, size_t at) const {
    const uint32_t value = little32(from, at);
    return swapped_ ? __builtin_bswap32(value) : value;
  }
  Bytes take(size_t count) {
    const Bytes part = file_.first(count);
    file_ = file_.subspan(count);
    return part;
  }

  const char* file_header() {
    if (file_.size() > kMaxCaptureBytes) return "the file is too long";
    if (file_.size() < kFileHeader) return "the file is shorter than its header";
    const Bytes header = take(kFileHeader);
    const uint32_t magic = little32(header, 0);
    swapped_ = magic != kMicroseconds && magic != kNanoseconds;
    const uint32_t known = word(header, 0);
    if (known != kMicroseconds && known != kNanoseconds) return "it is no classic pcap file";
    per_us_ = known == kNanoseconds ? 1000 : 1;
    const uint32_t version = word(header, 4);
    if (version != (swapped_ ? 0x00020004u : 0x00040002u)) return "only version 2.4 is known";
    if (word(header, 20) != kLinkTypeRaw) return "only raw IP packets (link type 101) are known";
    return nullptr;
  }

  const char* record(CapturedPacket* packet) {
    if (file_.size() < kRecordHeader) return "the file ends within a record's header";
    const Bytes header = take(kRecordHeader);
    const uint32_t fraction = word(header, 4), captured = word(header, 8);
    if (fraction >= 1'000'000 * per_us_) return "its time has more than a second of fraction";
    packet->time_us = uint64_t{word(header, 0)} * 1'000'000 + fraction / per_us_;
    if (captured != word(header, 12)) return "it was not captured whole";
    if (captured > kSnapLength) return "it is longer than a packet can be";
    if (captured > file_.size()) return "the file ends within it";
    return read_ip_packet(take(captured), packet);
  }

  Bytes file_;
  bool swapped_ = false;
  uint32_t per_us_ = 1;
  size_t number_ = 0;
};

}  // namespace

std::string text_of(const CapturedPacket& packet) {
  std::string text = packet.from.to_string() + " > " + packet.to.to_string() + ":";
  for (const std::byte b : packet.payload) {
    char hex[4];
    std::snprintf(hex, sizeof hex, " %02x", std::to_integer<unsigned>(b));
    text += hex;
  }
  return text;
}

std::vector<std::byte> ip_packet(const CapturedPacket& packet) {
  const auto udp = static_cast<uint32_t>(kUdpHeader + packet.payload.size());
  std::vector<std::byte> bytes;
  put_big16(&bytes, 0x4500);
  put_big16(&bytes, static_cast<uint32_t>(kIpHeader) + udp);
  put_big16(&bytes, 0);       // identification
  put_big16(&bytes, 0x4000);  // do not fragment
  put_big16(&bytes, 64 << 8 | kUdpProtocol);
  put_big16(&bytes, 0);
  put_address(&bytes, packet.from);
  put_address(&bytes, packet.to);
  set_checksum(&bytes, 10, checksum(bytes));
  put_big16(&bytes, packet.from.port());
  put_big16(&bytes, packet.to.port());
  put_big16(&bytes, udp);
  put_big16(&bytes, 0);
  bytes.insert(bytes.end(), packet.payload.begin(), packet.payload.end());
  set_checksum(&bytes, kIpHeader + 6, udp_checksum(bytes));
  return bytes;
}

const char* read_ip_packet(std::span<const std::byte> ip, CapturedPacket* packet) {
  if (ip.size() < kIpHeader + kUdpHeader) return "it is shorter than its headers";
  if (ip[0] != std::byte{0x45}) return "it is not IPv4 without options";
  if (big16(ip, 2) != ip.size()) return "IP tells another length";
  if ((big16(ip, 6) & 0x3fff) != 0) return "it is a fragment";
  if (ip[9] != std::byte{kUdpProtocol}) return "it is not UDP";
  if (checksum(ip.first(kIpHeader)) != 0) return "its IP checksum is wrong";
  if (big16(ip, kIpHeader + 4) != ip.size() - kIpHeader) return "UDP tells another length";
  if (big16(ip, kIpHeader + 6) != 0) {
    uint32_t sum = kUdpProtocol + big16(ip, kIpHeader + 4);
    for (size_t at = 12; at < kIpHeader; at += 2) sum += big16(ip, at);
    if (checksum(ip.subspan(kIpHeader), sum) != 0) return "its UDP checksum is wrong";
  }
  packet->from = address_at(ip, 12, big16(ip, kIpHeader));
  packet->to = address_at(ip, 16, big16(ip, kIpHeader + 2));
  const Bytes payload = ip.subspan(kIpHeader + kUdpHeader);
  packet->payload.assign(payload.begin(), payload.end());
  return nullptr;
}

std::vector<std::byte> write_pcap(std::span<const CapturedPacket> packets) {
  std::vector<std::byte> file;
  for (const uint32_t word : {kMicroseconds, 0x00040002u, 0u, 0u, kSnapLength, kLinkTypeRaw}) {
    put_little32(&file, word);
  }
  for (const CapturedPacket& packet : packets) {
    const auto bytes = ip_packet(packet);
    put_little32(&file, static_cast<uint32_t>(packet.time_us / 1'000'000));
    put_little32(&file, static_cast<uint32_t>(packet.time_us % 1'000'000));
    for (int i = 0; i < 2; ++i) put_little32(&file, static_cast<uint32_t>(bytes.size()));
    file.insert(file.end(), bytes.begin(), bytes.end());
  }
  return file;
}

Result<std::vector<CapturedPacket>> read_pcap(std::span<const std::byte> file) {
  return PcapReader(file).read();
}

}  // namespace slime::test
