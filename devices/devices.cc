#include "devices/devices.h"

#include <net/if.h>

#include <algorithm>

#include "base/machine/sysfs.h"
#include "devices/device_groups.h"
#include "transports/registry.h"

namespace slime {
namespace {

constexpr size_t kMostSaid = 4096;  // keys of first_time()

// How many of the rails before this one are of its port.
size_t place_in_port(const std::vector<Rail*>& rails, size_t rail) {
  return static_cast<size_t>(
      std::count_if(rails.begin(), rails.begin() + static_cast<ptrdiff_t>(rail),
                    [&](const Rail* earlier) { return same_port(*earlier, *rails[rail]); }));
}

// "eth0" where it has one rail here, and for "eth0.0" where it has several.
std::string port_name(const std::vector<Rail*>& rails, const Rail& first) {
  const std::string& name = first.caps().name;
  const auto shares = [&](const Rail* rail) { return same_port(*rail, first); };
  return std::ranges::count_if(rails, shares) > 1 ? name.substr(0, name.rfind('.')) : name;
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
  properties.pci_path = first.pci_path;
  properties.guid = first.guid;
  properties.port = first.port;
  properties.memory_kinds = ~0u;
  properties.dma_buf = properties.lines_in_order = true;
  properties.members = std::move(members);
  for (size_t i = 0; i < rails.size(); ++i) {
    const RailCaps& caps = rails[i]->caps();
    properties.speed_mbps += caps.speed_mbps;
    if (place_in_port(rails, i) == 0) {
      properties.name += (i == 0 ? "" : "+") + port_name(rails, *rails[i]);
    }
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

Result<std::unique_ptr<Devices>> Devices::open(const Settings& settings, const Clock& clock) {
  std::unique_ptr<Devices> devices(new Devices(settings, clock));
  if (settings.disable) {
    devices->notes_.emplace_back("NCCL_SLIME_DISABLE is set: no devices");
    return devices;
  }
  auto rails = open_rails(settings, &devices->notes_);
  if (!rails) return fail(rails.error());
  devices->adopt(std::move(*rails));
  return devices;
}

std::unique_ptr<Devices> Devices::of_rails(std::vector<std::unique_ptr<Rail>> rails,
                                           const Settings& settings, const Clock& clock,
                                           bool progresses_idle_comms) {
  std::unique_ptr<Devices> devices(new Devices(settings, clock));
  devices->progresses_idle_comms_ = progresses_idle_comms;
  devices->adopt(std::move(rails));
  return devices;
}

void Devices::adopt(std::vector<std::unique_ptr<Rail>> rails) {
  rails_ = std::move(rails);
  for (const auto& rail : rails_) {
    const unsigned index = rail->caps().interface;
    char name[IF_NAMESIZE];
    if (index == 0 || interfaces_.contains(index) || !if_indextoname(index, name)) continue;
    if (const auto now = traffic_of(index)) interfaces_[index] = {name, *now};
  }
  totals_.resize(rails_.size());
  for (DeviceGroup& group : group_rails(rails_, static_cast<size_t>(settings_.rails_per_device))) {
    add_device(group.rails, {}, std::move(group.reason));
  }
}

int Devices::add_device(const std::vector<Rail*>& rails, std::vector<int> members,
                        std::string reason) {
  const int index = static_cast<int>(devices_.size());
  if (members.empty()) members.push_back(index);
  DeviceProperties properties = describe(rails, std::move(members));
  properties.reason = std::move(reason);
  devices_.emplace_back(by_turns(rails), std::move(properties));
  return index;
}

size_t Devices::device_count() const {
  const std::lock_guard lock(mutex_);
  return devices_.size();
}

Device* Devices::device(int index) {
  const std::lock_guard lock(mutex_);
  if (index < 0 || static_cast<size_t>(index) >= devices_.size()) return nullptr;
  return &devices_[static_cast<size_t>(index)];
}

// The members must be physical devices, each named once. A link takes kMaxRails at most.
Result<int> Devices::merge(std::span<const int> members) {
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
  std::vector<std::vector<Rail*>> parts;
  for (const int member : wanted) parts.push_back(devices_[static_cast<size_t>(member)].rails());
  const std::vector<Rail*> rails = join_rails(parts);
  if (rails.empty()) {
    return fail(make_error(Status::kUnsupported, 0,
                           "cannot merge %zu devices: a link takes %u rails at most", wanted.size(),
                           kMaxRails));
  }
  for (size_t i = 0; i < devices_.size(); ++i) {
    if (devices_[i].properties().members == wanted) return static_cast<int>(i);
  }
  return add_device(rails, std::move(wanted), "");
}

// Called at the end of each channel, from any thread.
void Devices::fold(const Rail& rail, const RailTotals& totals) {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < rails_.size(); ++i) {
    if (rails_[i].get() == &rail) totals_[i].add(totals);
  }
}

std::vector<InterfaceReport> Devices::interfaces() const {
  std::vector<InterfaceReport> reports;
  for (const auto& [index, before] : interfaces_) {
    const auto now = traffic_of(index);
    if (now) reports.push_back({before.name, *now - before.traffic});
  }
  return reports;
}

bool Devices::first_time(const std::string& key) {
  const std::lock_guard lock(mutex_);
  return said_.size() < kMostSaid && said_.insert(key).second;
}

std::vector<RailReport> Devices::report() const {
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
    // A device of many NICs takes fewer rails of each.
    if (!report.device.empty()) reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace slime
