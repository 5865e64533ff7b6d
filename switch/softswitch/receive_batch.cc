#include "switch/softswitch/receive_batch.h"

#include <cstring>

namespace slime::net {

ReceiveBatch::ReceiveBatch(uint32_t max_lanes)
    : stride_(kLine + (4 * size_t{max_lanes} + kLine - 1) / kLine * kLine),
      memory_(static_cast<std::byte*>(std::aligned_alloc(kLine, kPackets * stride_))) {
  if (!memory_) return;
  std::memset(memory_.get(), 0, kPackets * stride_);
  for (uint32_t i = 0; i < kPackets; ++i) {
    places_[i] = {.iov_base = at(i), .iov_len = sap::kHeaderBytes + 4 * size_t{max_lanes}};
    messages_[i].msg_hdr.msg_name = &names_[i];
    messages_[i].msg_hdr.msg_iov = &places_[i];
    messages_[i].msg_hdr.msg_iovlen = 1;
  }
  used_ = kPackets;
}

int ReceiveBatch::receive(int fd, int flags) {
  // The kernel has written how long the addresses were.
  for (uint32_t i = 0; i < used_; ++i) {
    messages_[i].msg_hdr.msg_namelen = sizeof(sockaddr_in6);
  }
  used_ = 0;
  const int count = recvmmsg(fd, messages_.data(), kPackets, flags, nullptr);
  if (count > 0) used_ = static_cast<uint32_t>(count);
  return count;
}

// The same few senders come again and again, mostly in the same order: most addresses need no
// conversion.
const SocketAddress& ReceiveBatch::from(uint32_t index) {
  const socklen_t bytes = messages_[index].msg_hdr.msg_namelen;
  if (bytes > sizeof(sockaddr_in6) || bytes == 0) return addresses_[index] = SocketAddress();
  if (std::memcmp(&known_[index], &names_[index], bytes) != 0) {
    const auto* name = reinterpret_cast<const sockaddr*>(&names_[index]);
    addresses_[index] = SocketAddress::from_sockaddr(name, bytes).value_or(SocketAddress());
    std::memcpy(&known_[index], &names_[index], bytes);
  }
  return addresses_[index];
}

}  // namespace slime::net
