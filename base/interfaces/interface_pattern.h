// The user's list of interfaces, in the syntax of NCCL_SOCKET_IFNAME.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace slime {

struct InterfacePattern {
  bool exclude = false;
  bool exact = false;
  std::vector<std::string> names;

  static InterfacePattern parse(std::string_view text);

  bool matches(const std::string& name) const;
  // A pattern without names counts as none, even if it has signs (misc/socket.cc,
  // ncclFindInterfaces).
  bool is_given() const { return !names.empty(); }
  bool includes() const { return !exclude && is_given(); }
};

}  // namespace slime
