// Whether a NIC's port has a link partner.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/net/socket.h"

namespace slime {

enum class Carrier : uint8_t { kUnknown, kUp, kDown };

// The carrier of a network interface; one that is not up has none, and of one that is gone, or has
// another name now, nothing is known. The kernel is asked every 50 ms at most, by one ioctl; any
// thread may call. A netlink socket would report each change at once, but every process would have
// to read and parse those of all interfaces; nobody needs to know sooner.
//
// Knows the interfaces of the network namespace that it was made in.
class CarrierSense {
 public:
  explicit CarrierSense(std::string interface);
  Carrier look(uint64_t now_ns);

 private:
  Carrier ask() const;

  const std::string interface_;
  const Fd socket_;
  std::atomic<uint64_t> look_again_ns_ = 0;
  std::atomic<Carrier> carrier_ = Carrier::kUnknown;
};

}  // namespace slime
