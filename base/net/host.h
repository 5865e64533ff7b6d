// A host that a user gave, by name or address: all its addresses, and how to listen there.
//
// Only resolve() and listen_at() wait, for the resolver. Threads: any.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/net/socket.h"

namespace slime {

// The addresses of one host with one port, in the order in which they are to be tried. One converts
// to a list of one.
class Addresses : public std::vector<SocketAddress> {
 public:
  using std::vector<SocketAddress>::vector;
  Addresses(const SocketAddress& one) : Addresses({one}) {}  // NOLINT: a list of one
};

// All addresses, in the order of the resolver (RFC 6724), but in turn one of each IP version
// (RFC 8305, 4): a host whose first version leads nowhere is reached at the second try.
Result<Addresses> resolve(const HostPort& host, const char* what);
Result<Addresses> resolve(const std::string& text, uint16_t default_port, const char* what);
// The same; while the resolver itself cannot be reached, it is asked again, until the limit.
Result<Addresses> resolve(const HostPort& host, const char* what, const Deadline& limit);

// Listens on all addresses of both IP versions, or of IPv4 where the kernel has no other.
Result<Fd> listen_on_all(uint16_t port);
// Listens where other hosts look for this one by the same text: at an address, there; at localhost,
// at its first address that can be had; at another name, on all addresses, because hosts may
// resolve a name differently.
Result<Fd> listen_at(const HostPort& host, const char* what);

}  // namespace slime
