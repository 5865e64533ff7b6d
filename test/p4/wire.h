// One end of a veth pair whose other end is a port of a switch: frames, as its hosts send and get
// them. Needs CAP_NET_RAW.
#pragma once

#include <vector>

#include "base/error.h"
#include "base/net/socket.h"
#include "test/support/pcap.h"

namespace slime::p4 {

inline constexpr uint64_t kSwitchMac = 0x020000000001;
// A host's MAC, made of its address.
uint64_t mac_of(const SocketAddress& host);

class Wire {
 public:
  static Result<Wire> open(const std::string& interface, const SocketAddress& of_switch);

  bool send(const test::CapturedPacket& packet);
  // Asks the switch for its MAC, as a host whose address is `number`: its answer leaves after all
  // that it sent before.
  bool send_marker(uint32_t number);

  // What the switch sends up to its answer to that marker; an error after five seconds without.
  Result<std::vector<test::CapturedPacket>> receive_until(uint32_t number);

 private:
  Wire(Fd fd, const SocketAddress& of_switch) : fd_(std::move(fd)), switch_(of_switch) {}
  Fd fd_;
  SocketAddress switch_;
};

}  // namespace slime::p4
