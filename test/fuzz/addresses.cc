// Socket addresses: as text, as a peer sends them, and as the kernel gives them.

#include "base/net/socket.h"
#include "test/fuzz/support/target.h"

namespace slime {

static void check_twins(const SocketAddress& address) {
  const auto unpacked = SocketAddress::unpack(address.pack());
  FUZZ_CHECK(unpacked && *unpacked == address);
  const auto parsed = SocketAddress::parse(address.to_string());
  FUZZ_CHECK(parsed && *parsed == address);
  const auto copied = SocketAddress::from_sockaddr(address.data(), address.size());
  FUZZ_CHECK(copied && *copied == address);
}

SLIME_FUZZ_TARGET(addresses, input) {
  switch (input.below(3)) {
    case 0: {
      const auto address = SocketAddress::parse(fuzz::text_of(input.rest()));
      if (address) return check_twins(*address);
      break;
    }
    case 1: {
      const auto wire = input.rest();
      const auto address = SocketAddress::unpack(wire);
      if (!address) break;
      const auto again = address->pack();
      FUZZ_CHECK(std::memcmp(again.data(), wire.data(), again.size()) == 0);
      return check_twins(*address);
    }
    default: {
      sockaddr_storage storage{};
      const auto bytes = input.bytes(sizeof storage);
      if (!bytes.empty()) std::memcpy(&storage, bytes.data(), bytes.size());
      const auto address = SocketAddress::from_sockaddr(reinterpret_cast<sockaddr*>(&storage),
                                                        static_cast<socklen_t>(bytes.size()));
      if (address) return check_twins(*address);
    }
  }
}

}  // namespace slime
