#include "tools/switchd/config_values.h"

#include "tools/common/bytes.h"

namespace slime::switchd {

Taken take_bytes(const std::string& text, uint64_t* to) {
  const auto bytes = tools::parse_bytes(text);
  if (!bytes || *bytes == 0) return "a number of bytes, such as 64M";
  *to = *bytes;
  return {};
}

Taken take_address(const std::string& text, SocketAddress* to) {
  const auto address = SocketAddress::parse(text);
  if (!address) return "a numeric address with a port, such as 10.0.0.1:28880";
  *to = *address;
  return {};
}

Taken take_peer(const std::string& text, std::string* to) {
  SocketAddress address;
  *to = text;
  if (auto wrong = take_address(text, &address); !wrong.empty()) return wrong;
  return address.is_any() || address.port() == 0 ? "one address with a port" : "";
}

Taken take_flag(const std::string& text, bool* to) {
  *to = text == "true";
  return text == "true" || text == "false" ? "" : "true or false";
}

Taken take_mac(const std::string& text, uint64_t* to) {
  const Taken accepted = "the MAC of one host, such as 02:00:00:00:00:01";
  if (text.size() != 17) return accepted;
  *to = 0;
  for (size_t at = 0; at < text.size(); at += 3) {
    unsigned byte = 0;
    const char* end = text.data() + at + 2;
    const auto [stop, error] = std::from_chars(text.data() + at, end, byte, 16);
    if (error != std::errc{} || stop != end || (at + 2 < text.size() && *end != ':')) {
      return accepted;
    }
    *to = *to << 8 | byte;
  }
  // The lowest bit of the first byte marks an address of many hosts (IEEE 802).
  return *to == 0 || (*to >> 40 & 1) != 0 ? accepted : "";
}

}  // namespace slime::switchd
