// The addresses by which other hosts reach this one, where they are not its own: behind NAT, or in
// a container whose ports are mapped. Ports are the same on both sides.
//
// Threads: any.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/net/socket.h"

namespace slime {

class AdvertisedAddresses {
 public:
  // "203.0.113.7", for all own addresses of this family; or
  // "10.0.0.1=203.0.113.7,10.1.0.1=203.0.113.8", for each.
  static std::optional<AdvertisedAddresses> parse(std::string_view text);
  static AdvertisedAddresses of_setting(std::string_view text) {
    return parse(text).value_or(AdvertisedAddresses());
  }
  // What peers are told in place of this own address; itself, if nothing is said of it.
  SocketAddress of(const SocketAddress& own) const;

 private:
  std::optional<SocketAddress> for_all_;
  std::vector<std::pair<SocketAddress, SocketAddress>> for_each_;  // own, other; without ports
};

}  // namespace slime
