// Packets that one system call has received.
#pragma once

#include <netinet/in.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <span>

#include "base/net/socket.h"
#include "switch/protocol/sap.h"

namespace slime::net {

// States: empty() without memory; else the packets of the last receive().
// Invariant: datagram(), truncated() and from() are valid for indices below the last receive()'s
// answer, until the next receive().
// Thread rules: one thread.
class ReceiveBatch {
 public:
  static constexpr uint32_t kPackets = 64;

  explicit ReceiveBatch(uint32_t max_lanes);
  bool empty() const { return !memory_; }  // there was no memory

  // recvmmsg's answer: how many packets came, or -1 and errno.
  int receive(int fd, int flags);

  // Of packet `index` of the last receive().
  std::span<const std::byte> datagram(uint32_t index) const {
    return {at(index), messages_[index].msg_len};
  }
  bool truncated(uint32_t index) const {
    return (messages_[index].msg_hdr.msg_flags & MSG_TRUNC) != 0;
  }
  const SocketAddress& from(uint32_t index);

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  // The header ends, and the payload begins, at a cache line: vector loads of payload then never
  // touch two lines.
  static constexpr size_t kLine = 64;
  static constexpr size_t kPad = kLine - sap::kHeaderBytes;
  std::byte* at(uint32_t index) const { return memory_.get() + index * stride_ + kPad; }

  const size_t stride_;
  std::unique_ptr<std::byte, Free> memory_;
  std::array<iovec, kPackets> places_;
  std::array<sockaddr_in6, kPackets> names_{};  // room for either family
  std::array<sockaddr_in6, kPackets> known_{};  // what addresses_ were made of
  std::array<SocketAddress, kPackets> addresses_;
  std::array<mmsghdr, kPackets> messages_{};
  uint32_t used_ = 0;
};

}  // namespace slime::net
