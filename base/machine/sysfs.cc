#include "base/machine/sysfs.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>

#include "base/net/socket.h"
#include "base/text.h"

namespace slime {
namespace {

constexpr int kMaxPathDepth = 64;

}  // namespace

std::optional<std::string> read_line(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  char text[4096];  // the kernel gives a page at most
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
  return line ? parse_whole<long>(*line) : std::nullopt;
}

// "dddd:bb:dd.f": from the first colon on, the form is fixed; the domain has four to eight digits.
std::optional<PciAddress> parse_pci_address(std::string_view path) {
  const std::string_view name = path.substr(path.find_last_of('/') + 1);  // npos + 1 is 0
  const size_t domain_digits = name.find(':');
  if (domain_digits == name.npos || domain_digits < 4 || domain_digits > 8) return std::nullopt;
  const std::string_view rest = name.substr(domain_digits);
  if (rest.size() != 8 || rest[3] != ':' || rest[6] != '.') return std::nullopt;
  const auto domain = parse_whole<uint32_t>(name.substr(0, domain_digits), 16);
  const auto bus = parse_whole<uint32_t>(rest.substr(1, 2), 16);
  const auto device = parse_whole<uint32_t>(rest.substr(4, 2), 16);
  const auto function = parse_whole<uint32_t>(rest.substr(7, 1), 16);
  if (!domain || !bus || !device || !function) return std::nullopt;
  return PciAddress{*domain, *bus, *device, *function};
}

// Goes up from the device's directory until a name is a PCI address.
std::string find_pci_function(const std::string& device_link) {
  char resolved[PATH_MAX];
  if (realpath(device_link.c_str(), resolved) == nullptr) return "";
  std::string path = resolved;
  for (int depth = 0; depth < kMaxPathDepth && !path.empty(); ++depth) {
    if (parse_pci_address(path)) return path;
    path.resize(path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
  }
  return "";
}

int read_numa_node(const std::string& pci_path) {
  if (pci_path.empty()) return -1;
  const auto node = read_number(pci_path + "/numa_node");
  return node && *node >= 0 && *node <= INT_MAX ? static_cast<int>(*node) : -1;
}

CpuSet read_local_cpus(const std::string& pci_path) {
  const auto list = pci_path.empty() ? std::nullopt : read_line(pci_path + "/local_cpulist");
  return (list ? CpuSet::parse(*list) : std::nullopt).value_or(CpuSet());
}

}  // namespace slime
