#include <fcntl.h>
#include <slime/socket.h>
#include <slime/sysfs.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <string_view>

#include "base/interface_sysfs.h"

namespace slime {
namespace {

constexpr int kMaxPathDepth = 64;

}  // namespace

std::optional<std::string> read_line(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  char text[128];
  ssize_t bytes = 0;
  do {
    bytes = read(fd.get(), text, sizeof text);
  } while (bytes < 0 && errno == EINTR);
  if (bytes <= 0) return std::nullopt;
  const std::string_view line(text, static_cast<size_t>(bytes));
  return std::string(line.substr(0, line.find('\n')));
}

std::optional<long> read_number(const std::string& path) {
  const auto line = read_line(path);
  if (!line) return std::nullopt;
  long number = 0;
  const char* const end = line->data() + line->size();
  const auto [stop, error] = std::from_chars(line->data(), end, number);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

std::string find_pci_function(const std::string& device_link) {
  char resolved[PATH_MAX];
  if (realpath(device_link.c_str(), resolved) == nullptr) return "";
  std::string path = resolved;
  PciAddress address;
  for (int depth = 0; depth < kMaxPathDepth && !path.empty(); ++depth) {
    if (parse_pci_address(path, &address)) return path;
    path.resize(path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
  }
  return "";
}

int read_numa_node(const std::string& pci_path) {
  if (pci_path.empty()) return -1;
  const auto node = read_number(pci_path + "/numa_node");
  return node && *node >= 0 && *node <= INT_MAX ? static_cast<int>(*node) : -1;
}

}  // namespace slime
