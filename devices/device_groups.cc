#include "devices/device_groups.h"

#include <algorithm>
#include <optional>

#include "base/machine/topology.h"
#include "devices/device.h"

namespace slime {
namespace {

using Nic = std::vector<Rail*>;

constexpr uint64_t kSlowPart = 10;  // a NIC with this part of the fastest stays by itself

// Rails of one port follow each other.
std::vector<Nic> nics_of(const std::vector<std::unique_ptr<Rail>>& rails) {
  std::vector<Nic> nics;
  for (const auto& rail : rails) {
    if (nics.empty() || !same_port(*nics.back().front(), *rail)) nics.emplace_back();
    nics.back().push_back(rail.get());
  }
  return nics;
}

const RailCaps& caps_of(const Nic& nic) { return nic.front()->caps(); }

uint64_t speed_of(const Nic& nic) {
  uint64_t sum = 0;
  for (const Rail* rail : nic) sum += rail->caps().speed_mbps;
  return sum;
}

bool share_cable(const Nic& one, const Nic& other) {
  const RailCaps &a = caps_of(one), &b = caps_of(other);
  return a.guid != 0 && a.guid == b.guid && a.port == b.port;
}

bool may_be_grouped(const Nic& nic) { return caps_of(nic).transport == "tcp"; }

// Where NICs are that are equally near. The distances are a letter for each GPU.
struct Nearness {
  std::string place, distances;
  bool operator==(const Nearness&) const = default;
};

std::string describe(const PciPlace& place) {
  if (place.numa_node >= 0) return "of NUMA node " + std::to_string(place.numa_node);
  if (place.host_bridge.empty()) return "with a place that /sys does not say";
  return "below " + place.host_bridge.substr(place.host_bridge.rfind('/') + 1);
}

Nearness nearness_of(const Nic& nic, const std::optional<Topology>& topology) {
  const std::string& path = caps_of(nic).pci_path;
  if (path.empty() || !topology) return {"without a PCI function", ""};
  const PciPlace place = topology->locate(path);
  Nearness nearness{describe(place), ""};
  for (const PciPlace& gpu : topology->gpus()) {
    nearness.distances += static_cast<char>('a' + static_cast<int>(distance_between(place, gpu)));
  }
  return nearness;
}

DeviceGroup group_of(const std::vector<Nic>& nics, const std::string& why) {
  DeviceGroup group{join_rails(nics), ""};
  if (nics.size() > 1) group.reason = std::to_string(nics.size()) + " NICs " + why;
  return group;
}

std::vector<DeviceGroup> by_number(const std::vector<Nic>& nics, size_t per_device) {
  const size_t most = std::min<size_t>(per_device, kMaxRails);
  std::vector<DeviceGroup> groups;
  for (size_t first = 0; first < nics.size(); first += most) {
    const size_t end = std::min(first + most, nics.size());
    groups.push_back(group_of(
        {nics.begin() + static_cast<ptrdiff_t>(first), nics.begin() + static_cast<ptrdiff_t>(end)},
        "by NCCL_SLIME_RAILS_PER_DEVICE"));
  }
  return groups;
}

std::vector<DeviceGroup> by_nearness(const std::vector<Nic>& nics, const std::string& sysfs_root) {
  const auto has_place = [](const Nic& nic) {
    return may_be_grouped(nic) && !caps_of(nic).pci_path.empty();
  };
  std::optional<Topology> topology;  // reading it takes milliseconds
  if (std::ranges::count_if(nics, has_place) > 0 && nics.size() > 1) {
    topology = Topology::read(sysfs_root);
  }
  struct Group {
    Nearness nearness;
    std::vector<Nic> nics;
  };
  uint64_t fastest = 0;
  for (const Nic& nic : nics) fastest = std::max(fastest, speed_of(nic));
  std::vector<Group> found;
  for (const Nic& nic : nics) {
    const bool alone = !may_be_grouped(nic) || speed_of(nic) * kSlowPart <= fastest;
    const Nearness nearness = alone ? Nearness() : nearness_of(nic, topology);
    auto group = std::ranges::find_if(found, [&](const Group& other) {
      const auto shares = [&](const Nic& member) { return share_cable(member, nic); };
      return !alone && other.nearness == nearness && other.nics.size() < kMaxRails &&
             std::ranges::none_of(other.nics, shares);
    });
    if (group == found.end()) group = found.insert(group, {nearness, {}});
    group->nics.push_back(nic);
  }
  std::vector<DeviceGroup> groups;
  for (const auto& [nearness, members] : found) {
    const char* const far = nearness.distances.empty() ? "" : ", equally far from each GPU";
    groups.push_back(group_of(members, nearness.place + far));
  }
  return groups;
}

}  // namespace

std::vector<DeviceGroup> group_rails(const std::vector<std::unique_ptr<Rail>>& rails,
                                     size_t nics_per_device, const std::string& sysfs_root) {
  const std::vector<Nic> nics = nics_of(rails);
  return nics_per_device > 0 ? by_number(nics, nics_per_device) : by_nearness(nics, sysfs_root);
}

std::vector<Rail*> join_rails(const std::vector<std::vector<Rail*>>& parts) {
  size_t sum = 0;
  for (const auto& part : parts) sum += part.size();
  const size_t most = sum <= kMaxRails ? sum : kMaxRails / parts.size();
  std::vector<Rail*> rails;
  for (const auto& part : parts) {
    const auto count = static_cast<ptrdiff_t>(std::min(part.size(), most));
    rails.insert(rails.end(), part.begin(), part.begin() + count);
  }
  return rails;
}

}  // namespace slime
