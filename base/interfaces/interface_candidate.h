// What is known of an interface when rails are chosen, and how good a rail it would be.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/interfaces/address_range.h"
#include "base/interfaces/interfaces.h"

namespace slime {

struct Candidate {
  std::string name;
  unsigned flags = 0;
  LinkFacts link;
  std::vector<SocketAddress> addresses;

  bool loopback() const;
  bool up() const;
};

// The interfaces of the records with their addresses, in the order of the records.
std::vector<Candidate> group(const std::vector<InterfaceRecord>& records);

// The address by which a peer on another host reaches the interface, in the first of the wanted
// ranges that has one. nullopt: there is none.
std::optional<SocketAddress> usable_address(const Candidate& candidate,
                                            const AddressWish& wanted = {});

// Where the user names no interface, those of the best class that is there are used.
enum class InterfaceClass : uint8_t { kNic, kVirtual, kLinkLocal, kLoopback, kNever };

struct Judgement {
  InterfaceClass its_class = InterfaceClass::kNic;
  std::string why;  // "is a tunnel (wireguard)"; empty: of the best class
};
// `all`: the interfaces of the host, some of which may belong to a bridge.
Judgement judge(const Candidate& candidate, const std::vector<Candidate>& all);

}  // namespace slime
