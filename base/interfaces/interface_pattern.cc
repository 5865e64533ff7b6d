#include "base/interfaces/interface_pattern.h"

#include <algorithm>

#include "base/text.h"

namespace slime {
bool InterfacePattern::matches(const std::string& name) const {
  return std::ranges::any_of(names, [&](const std::string& wanted) {
    return exact ? name == wanted : name.starts_with(wanted);
  });
}

// The order of the signs is NCCL's: "^=eth0" (misc/socket.cc, findInterfaces).
InterfacePattern InterfacePattern::parse(std::string_view text) {
  InterfacePattern pattern;
  text = trimmed(text);
  if (text.starts_with('^')) {
    pattern.exclude = true;
    text.remove_prefix(1);
  }
  if (text.starts_with('=')) {
    pattern.exact = true;
    text.remove_prefix(1);
  }
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view name = trimmed(text.substr(0, comma));
    if (!name.empty()) pattern.names.emplace_back(name);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return pattern;
}

}  // namespace slime
