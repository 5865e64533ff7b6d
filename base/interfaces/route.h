// By which interface a connection leaves this host, and whether it must be told.
//
// Where several interfaces have addresses in one subnet, the kernel sends everything to that subnet
// by the one whose route is first, whatever the source address. A socket that is bound to an
// interface leaves by it.
//
// Threads: any.
#pragma once

#include <optional>
#include <string>

#include "base/interfaces/address_range.h"
#include "base/interfaces/interfaces.h"
#include "base/net/socket.h"

namespace slime {

struct Route {
  unsigned interface = 0;  // its index
  bool unicast = false;    // false: this host's own address, a broadcast, or no way
};
// What the kernel would do with a packet from `source` to `peer`; nullopt: it does not say, or has
// no route.
std::optional<Route> find_route(const SocketAddress& source, const SocketAddress& peer);

// Whether this process may bind a connection to an interface: since Linux 5.7 any may.
bool can_bind_to(const std::string& interface);

// The interface that connections of one address have to be bound to.
class Outlet {
 public:
  explicit Outlet(const Interface& interface);

  // The name of the interface, if a connection to this peer would leave by another one although
  // the peer is in the interface's own subnet. Empty: the kernel does right, or knows a way that
  // only it can know (a router, this host itself), or the scope of the address says it.
  std::string to_bind(const SocketAddress& peer) const;
  bool may_bind() const { return may_bind_; }  // false: this kernel does not let this process
  // Binds a connection that was accepted, so that its answers leave where the peer's packets come
  // in. One that came in by another interface stays as it is: it would hear nothing any more.
  void keep(const Fd& fd, const SocketAddress& peer) const;

 private:
  const std::string name_;
  const unsigned index_;
  const SocketAddress address_;
  const std::optional<AddressRange> subnet_;
  const bool may_bind_;
};

}  // namespace slime
