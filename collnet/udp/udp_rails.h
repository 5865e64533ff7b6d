// A worker's UDP ports, one for each rail of its device: rail 0 as the route to the switch has it,
// the others bound to an interface each.
//
// States: the ports are open from open() on; keep() closes some for good, and the numbers of those
// after them change. Invariant: there is one port at least.
// Thread rules: one thread. Nothing is allocated after open().
#pragma once

#include <span>
#include <string>
#include <vector>

#include "collnet/udp/udp_port.h"

namespace slime {

struct UdpRail {
  std::string interface;
  SocketAddress address;  // port 0
};

// The addresses of `hosts` (numeric) that an interface of this host has, in their order, each once.
// Loopback is no rail.
std::vector<UdpRail> udp_rails_of(std::span<const std::string> hosts);

class UdpRails final {
 public:
  // Rail 0 takes the address that the route to the first peer gives. If that is one of `wanted`,
  // the others follow in their order, at most `most` altogether; those that cannot be opened are
  // warned of and left out. If it is not, then the device has no part in this and there is one
  // rail.
  static Result<std::unique_ptr<UdpRails>> open(const UdpPortOptions& first,
                                                std::span<const UdpRail> wanted, uint32_t most);

  uint32_t count() const { return static_cast<uint32_t>(ports_.size()); }
  const UdpPort& port(uint32_t rail) const { return *ports_[rail]; }
  std::string name_of(uint32_t rail) const;  // "eth1 (10.0.1.5)"
  uint32_t max_packet_bytes() const;         // of the narrowest
  // Closes the rails whose bit is not set; those that stay move up.
  void keep(uint32_t rails);

  // Packets are taken from these only: from the switches on every rail, and from the other ranks'
  // addresses on the same rail.
  void set_switches(const std::vector<ShardPorts>& switches);
  void set_ranks(uint32_t rail, std::vector<SocketAddress> ranks) {
    ports_[rail]->set_ranks(std::move(ranks));
  }
  void send(uint32_t rail, const SocketAddress& to, std::span<const std::byte> datagram) {
    ports_[rail]->send(to, datagram);
  }
  void flush();
  void receive(DatagramUser& user, uint64_t now_ns);  // at most a batch of each
  UdpCounters counters() const;

 private:
  UdpRails() = default;
  void add(const UdpPortOptions& options);

  std::vector<std::unique_ptr<UdpPort>> ports_;
  UdpCounters closed_;  // of rails that are not kept
};

}  // namespace slime
