#include "base/interfaces/carrier.h"

#include <net/if.h>
#include <sys/ioctl.h>

#include <cstring>

namespace slime {
namespace {

constexpr uint64_t kIntervalNs = 50'000'000;

}  // namespace

CarrierSense::CarrierSense(std::string interface)
    : interface_(std::move(interface)), socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}

Carrier CarrierSense::look(uint64_t now_ns) {
  if (now_ns >= look_again_ns_.load(std::memory_order_relaxed)) {
    look_again_ns_.store(now_ns + kIntervalNs, std::memory_order_relaxed);
    carrier_.store(ask(), std::memory_order_relaxed);
  }
  return carrier_.load(std::memory_order_relaxed);
}

// IFF_RUNNING is the carrier; it is not set on an interface that is down (netdevice(7)).
Carrier CarrierSense::ask() const {
  ifreq request{};
  if (!socket_ || interface_.size() >= sizeof request.ifr_name) return Carrier::kUnknown;
  std::memcpy(request.ifr_name, interface_.data(), interface_.size());
  if (::ioctl(socket_.get(), SIOCGIFFLAGS, &request) != 0) return Carrier::kUnknown;
  return (request.ifr_flags & IFF_RUNNING) != 0 ? Carrier::kUp : Carrier::kDown;
}

}  // namespace slime
