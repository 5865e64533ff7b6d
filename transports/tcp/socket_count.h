// How many sockets, and so rails, an interface gets where the user leaves it to us
// (NCCL_SLIME_RAILS_PER_IF=0).
//
// Several sockets pay where one flow cannot fill the interface. Why it cannot, by driver:
//
//   ena          AWS caps a flow at 5 Gbit/s, 10 within a cluster placement group ("Amazon EC2
//                instance network bandwidth", single-flow traffic). NCCL's Socket takes 16 sockets
//                there (src/transport/net_socket.cc, ncclNetSocketGetNsockNthread, vendor 0x1d0f).
//   gve, gvnic   Google publishes a bandwidth per machine, none per flow; NCCL's Socket takes 4
//                sockets (the same place, vendor 0x1ae0). Linux called the driver gvnic until 6.0.
//   hv_netvsc,   Azure publishes none per flow either. All of these para-virtual NICs carry a flow
//   mana,        in one queue, which one thread of the host or one core of the guest serves.
//   virtio_net
//   bonding      A flow stays on one port of the bond (linux/Documentation/networking/bonding.rst,
//                xmit_hash_policy).
//   others       A NIC that carries a flow at its full speed: one socket up to what one core moves
//                through the kernel (25 Gbit/s, docs/performance.md), and no more than 4, since one
//                thread of NCCL drives them all: only the kernel's work is spread over more cores.
//   none         Loopback, veth, bridges, tunnels: one, as nothing says that more would help.
#pragma once

#include <string>

#include "base/interfaces/interfaces.h"

namespace slime::tcp {

inline constexpr int kMostSockets = 8;  // that are chosen here; the user may set up to 16

struct SocketCount {
  int sockets = 1;
  std::string reason;  // for people: "driver ena, 25000 Mb/s: one per 5000 Mb/s, 8 at most"
};

// `setting`: NCCL_SLIME_RAILS_PER_IF; not 0: it decides.
SocketCount count_sockets(const Interface& interface, int setting);

}  // namespace slime::tcp
