#include "link/setup/handshake.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/process.h"

namespace slime {

std::array<char, 96> own_name() {
  std::array<char, 96> name = {};
  std::snprintf(name.data(), name.size(), "%.63s:%d", own_host_name().c_str(),
                static_cast<int>(getpid()));
  return name;
}

std::string peer_name(const std::array<char, 96>& name, const SocketAddress& address) {
  return printable_field(name) + " (" + address.host() + ")";
}

bool valid(const Preamble& preamble, MessageType type) {
  return preamble.magic == kMagic && preamble.version == kProtocolVersion &&
         preamble.type == static_cast<uint16_t>(type);
}

std::string describe_mismatch(const Preamble& preamble, MessageType expected) {
  char text[160];
  if (preamble.magic == kMagic && preamble.version != kProtocolVersion) {
    std::snprintf(text, sizeof text,
                  "it speaks protocol version %u, this end %u: install the same version of "
                  "libnet-slime on all hosts",
                  preamble.version, kProtocolVersion);
  } else if (preamble.magic == __builtin_bswap32(kMagic)) {
    std::snprintf(text, sizeof text, "it has another byte order, which is not supported");
  } else {
    std::snprintf(text, sizeof text, "message %u expected, got magic 0x%08x type %u",
                  static_cast<unsigned>(expected), preamble.magic, preamble.type);
  }
  return text;
}

}  // namespace slime
