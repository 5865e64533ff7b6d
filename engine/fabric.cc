#include "engine/fabric.h"

#include <net/if.h>

#include <algorithm>

#include "base/machine/sysfs.h"
#include "engine/link/records.h"
#include "transports/registry.h"

namespace slime {
namespace {

constexpr size_t kMostSaid = 4096;  // keys of first_time()

std::string interface_of(const std::string& rail_name, const std::vector<Rail*>& rails) {
  const auto shares = [&](const Rail* rail) { return same_port(*rail, *rails.front()); };
  const bool one_port = std::all_of(rails.begin(), rails.end(), shares);
  return one_port && rails.size() > 1 ? rail_name.substr(0, rail_name.rfind('.')) : rail_name;
}

// How many of the rails before this one are of its port.
size_t place_in_port(const std::vector<Rail*>& rails, size_t rail) {
  return static_cast<size_t>(
      std::count_if(rails.begin(), rails.begin() + static_cast<ptrdiff_t>(rail),
                    [&](const Rail* earlier) { return same_port(*earlier, *rails[rail]); }));
}

// Orders the rails of a device: one rail of each port, then the next one of each, and so on.
// Where no subnet is shared, rail i meets the peer's rail i. So the first ports of both ends meet,
// and the second ones, even if the ends have different numbers of sockets for each port.
std::vector<Rail*> by_turns(const std::vector<Rail*>& rails) {
  std::vector<Rail*> ordered;
  for (size_t turn = 0; ordered.size() < rails.size(); ++turn) {
    for (size_t i = 0; i < rails.size(); ++i) {
      if (place_in_port(rails, i) == turn) ordered.push_back(rails[i]);
    }
  }
  return ordered;
}

DeviceProperties describe(const std::vector<Rail*>& rails, std::vector<int> members) {
  const RailCaps& first = rails.front()->caps();
  DeviceProperties properties;
  properties.name = interface_of(first.name, rails);
  properties.pci_path = first.pci_path;
  properties.guid = first.guid;
  properties.port = first.port;
  properties.memory_kinds = ~0u;
  properties.dma_buf = properties.lines_in_order = true;
  properties.members = std::move(members);
  for (size_t i = 0; i < rails.size(); ++i) {
    const RailCaps& caps = rails[i]->caps();
    properties.speed_mbps += caps.speed_mbps;
    if (i > 0 && place_in_port(rails, i) == 0) properties.name += "+" + caps.name;
    properties.latency_us = std::max(properties.latency_us, caps.latency_us);
    properties.memory_kinds &= caps.memory_kinds;
    properties.dma_buf &= caps.dma_buf;
    // A line lies within one stripe and so goes over one rail: it is enough that each rail keeps
    // it.
    properties.lines_in_order &= caps.lines_in_order;
    properties.near = properties.near | read_local_cpus(caps.pci_path);
  }
  return properties;
}

}  // namespace

Result<std::unique_ptr<Fabric>> Fabric::open(const Settings& settings, const Clock& clock) {
  std::unique_ptr<Fabric> fabric(new Fabric(settings, clock));
  if (settings.disable) {
    fabric->notes_.emplace_back("NCCL_SLIME_DISABLE is set: no devices");
    return fabric;
  }
  auto rails = open_rails(settings, &fabric->notes_);
  if (!rails) return fail(rails.error());
  fabric->adopt(std::move(*rails));
  return fabric;
}

std::unique_ptr<Fabric> Fabric::of_rails(std::vector<std::unique_ptr<Rail>> rails,
                                         const Settings& settings, const Clock& clock,
                                         bool progresses_idle_comms) {
  std::unique_ptr<Fabric> fabric(new Fabric(settings, clock));
  fabric->progresses_idle_comms_ = progresses_idle_comms;
  fabric->adopt(std::move(rails));
  return fabric;
}

void Fabric::adopt(std::vector<std::unique_ptr<Rail>> rails) {
  rails_ = std::move(rails);
  for (const auto& rail : rails_) {
    const unsigned index = rail->caps().interface;
    char name[IF_NAMESIZE];
    if (index == 0 || interfaces_.contains(index) || !if_indextoname(index, name)) continue;
    if (const auto now = traffic_of(index)) interfaces_[index] = {name, *now};
  }
  totals_.resize(rails_.size());
  group_rails();
}

// By default a device is one NIC port with all its rails. With RAILS_PER_DEVICE it has that many
// rails, in their order (PCI address, then name).
void Fabric::group_rails() {
  const auto per_device = static_cast<size_t>(settings_.rails_per_device);
  std::vector<Rail*> group;
  for (const auto& rail : rails_) {
    const bool full = per_device > 0 ? group.size() == per_device
                                     : !group.empty() && !same_port(*group.back(), *rail);
    if (full || group.size() == kMaxRails) {
      add_device(group, {});
      group.clear();
    }
    group.push_back(rail.get());
  }
  if (!group.empty()) add_device(group, {});
}

int Fabric::add_device(const std::vector<Rail*>& rails, std::vector<int> members) {
  const int index = static_cast<int>(devices_.size());
  if (members.empty()) members.push_back(index);
  DeviceProperties properties = describe(rails, std::move(members));
  devices_.emplace_back(by_turns(rails), std::move(properties));
  return index;
}

size_t Fabric::device_count() const {
  const std::lock_guard lock(mutex_);
  return devices_.size();
}

Device* Fabric::device(int index) {
  const std::lock_guard lock(mutex_);
  if (index < 0 || static_cast<size_t>(index) >= devices_.size()) return nullptr;
  return &devices_[static_cast<size_t>(index)];
}

// The members must be physical devices, each named once. A link takes kMaxRails at most.
Result<int> Fabric::merge(std::span<const int> members) {
  const std::lock_guard lock(mutex_);
  std::vector<int> wanted(members.begin(), members.end());
  for (const int member : wanted) {
    const bool known = member >= 0 && static_cast<size_t>(member) < devices_.size();
    if (!known || devices_[static_cast<size_t>(member)].properties().members.size() != 1) {
      return fail(make_error(Status::kInvalid, 0,
                             "cannot merge device %d: the physical devices are 0..%zu", member,
                             devices_.size() - 1));
    }
  }
  std::vector<int> sorted = wanted;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end() || wanted.empty()) {
    return fail(make_error(Status::kInvalid, 0, "cannot merge: no devices, or one named twice"));
  }
  const auto rails_of = [&](size_t most_of_each) {
    std::vector<Rail*> rails;
    for (const int member : wanted) {
      const auto& all = devices_[static_cast<size_t>(member)].rails();
      const auto count = static_cast<ptrdiff_t>(std::min(all.size(), most_of_each));
      rails.insert(rails.end(), all.begin(), all.begin() + count);
    }
    return rails;
  };
  std::vector<Rail*> rails = rails_of(kMaxRails);
  // If NICs have many sockets each, the device takes fewer of each NIC.
  if (rails.size() > kMaxRails && wanted.size() <= kMaxRails) {
    rails = rails_of(kMaxRails / wanted.size());
  }
  if (rails.size() > kMaxRails) {
    return fail(make_error(Status::kUnsupported, 0,
                           "cannot merge %zu devices: %zu rails, and a link takes %u at most",
                           wanted.size(), rails.size(), kMaxRails));
  }
  for (size_t i = 0; i < devices_.size(); ++i) {
    if (devices_[i].properties().members == wanted) return static_cast<int>(i);
  }
  return add_device(rails, std::move(wanted));
}

// Called at the end of each channel, from any thread.
void Fabric::fold(const Rail& rail, const RailTotals& totals) {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < rails_.size(); ++i) {
    if (rails_[i].get() == &rail) totals_[i].add(totals);
  }
}

std::vector<InterfaceReport> Fabric::interfaces() const {
  std::vector<InterfaceReport> reports;
  for (const auto& [index, before] : interfaces_) {
    const auto now = traffic_of(index);
    if (now) reports.push_back({before.name, *now - before.traffic});
  }
  return reports;
}

bool Fabric::first_time(const std::string& key) {
  const std::lock_guard lock(mutex_);
  return said_.size() < kMostSaid && said_.insert(key).second;
}

std::vector<RailReport> Fabric::report() const {
  const std::lock_guard lock(mutex_);
  std::vector<RailReport> reports;
  for (size_t i = 0; i < rails_.size(); ++i) {
    const RailCaps& caps = rails_[i]->caps();
    RailReport report{"", caps.name, caps.transport, caps.oob_address, caps.speed_mbps, totals_[i]};
    for (const Device& device : devices_) {
      const auto& rails = device.rails();
      if (std::find(rails.begin(), rails.end(), rails_[i].get()) == rails.end()) continue;
      report.device = device.properties().name;
      break;
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace slime
