#include "base/net/interface_pattern.h"

#include <algorithm>

namespace slime {
namespace {

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

bool InterfacePattern::matches(const std::string& name) const {
  return std::ranges::any_of(names, [&](const std::string& wanted) {
    return exact ? name == wanted : name.starts_with(wanted);
  });
}

// The order of the signs is NCCL's: "^=eth0" (misc/socket.cc, findInterfaces).
InterfacePattern InterfacePattern::parse(std::string_view text) {
  InterfacePattern pattern;
  text = trim(text);
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
    const std::string_view name = trim(text.substr(0, comma));
    if (!name.empty()) pattern.names.emplace_back(name);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return pattern;
}

}  // namespace slime
