#include "transports/rail_order.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <utility>

#include "base/machine/sysfs.h"

namespace slime {
namespace {

using Rails = std::vector<std::unique_ptr<Rail>>;

bool look_alike(const RailCaps& a, const RailCaps& b) {
  return a.guid == b.guid && a.port == b.port && a.transport == b.transport &&
         !a.pci_path.empty() && !b.pci_path.empty() && a.pci_path != b.pci_path;
}

std::string place_of(const RailCaps& caps) {
  return caps.name + " (" + caps.pci_path.substr(caps.pci_path.find_last_of('/') + 1) + ")";
}

std::string describe(const RailCaps& first, const RailCaps& second) {
  char guid[24];
  snprintf(guid, sizeof guid, "0x%016" PRIx64, first.guid);
  return "rails " + place_of(first) + " and " + place_of(second) + " have one GUID, " + guid +
         ", and one port, " + std::to_string(first.port) +
         ": NCCL takes them for one port and expects the speed of one; give each a GUID of its own "
         "(of a virtual function: ip link set ... vf ... node_guid ...), or a MAC address";
}

}  // namespace

void put_in_order(Rails* rails) {
  const auto key = [](const std::unique_ptr<Rail>& rail) {
    const auto address = parse_pci_address(rail->caps().pci_path);
    return std::pair(!address, address);
  };
  std::ranges::stable_sort(*rails, {}, key);
}

std::vector<std::string> describe_shared_guids(const Rails& rails) {
  std::vector<std::string> sentences;
  for (auto rail = rails.begin(); rail != rails.end(); ++rail) {
    const auto twin = std::find_if(rails.begin(), rail, [&](const std::unique_ptr<Rail>& earlier) {
      return look_alike(earlier->caps(), (*rail)->caps());
    });
    if (twin != rail) sentences.push_back(describe((*twin)->caps(), (*rail)->caps()));
  }
  return sentences;
}

}  // namespace slime
