// How values of the configuration are read. Each function returns an empty text if it has taken the
// value, or else what it accepts. Pure functions.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>

#include "base/net/socket.h"

namespace slime::switchd {

using Taken = std::string;

template <typename Number>
Taken take_number(const std::string& text, uint64_t least, uint64_t most, Number* to) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || value < least || value > most) {
    return "a number from " + std::to_string(least) + " to " + std::to_string(most);
  }
  *to = static_cast<Number>(value);
  return {};
}

Taken take_bytes(const std::string& text, uint64_t* to);  // such as 64M
Taken take_address(const std::string& text, SocketAddress* to);
// An address of one host with a port, kept as text.
Taken take_peer(const std::string& text, std::string* to);
Taken take_flag(const std::string& text, bool* to);
Taken take_mac(const std::string& text, uint64_t* to);  // as ip-link(8) prints them

}  // namespace slime::switchd
