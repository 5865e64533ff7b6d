// Whether a NIC's port has a link partner.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/net/socket.h"

namespace slime {

enum class Carrier : uint8_t { kUnknown, kUp, kDown };

// Reads the carrier of a network interface. An interface that is not up has no carrier. If it is
// gone, or has another name now, the carrier is unknown. look() asks the kernel every 50 ms at
// most, by one ioctl. A netlink socket would report each change at once, but every process would
// have to read the changes of all interfaces, and no caller needs to know sooner.
//
// It sees the interfaces of the network namespace in which it was made. Threads: any; the last
// answer and the time of the next question are atomic.
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
