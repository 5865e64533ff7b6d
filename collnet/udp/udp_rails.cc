#include "collnet/udp/udp_rails.h"

#include <algorithm>
#include <utility>

#include "base/interfaces/interfaces.h"
#include "base/log.h"

namespace slime {

std::vector<UdpRail> udp_rails_of(std::span<const std::string> hosts) {
  std::vector<UdpRail> rails;
  const auto records = interface_records();
  if (!records) return rails;  // one rail needs none
  for (const std::string& host : hosts) {
    const auto address = SocketAddress::parse(host);
    if (!address || address->is_any() || address->is_loopback()) continue;
    const auto has = [&](const InterfaceRecord& record) {
      return record.address && record.address->host() == address->host();
    };
    const auto record = std::ranges::find_if(*records, has);
    if (record == records->end()) continue;
    UdpRail rail{record->name, *address};
    rail.address.set_port(0);
    const auto is_same = [&](const UdpRail& other) { return other.address == rail.address; };
    if (std::ranges::none_of(rails, is_same)) rails.push_back(std::move(rail));
  }
  return rails;
}

Result<std::unique_ptr<UdpRails>> UdpRails::open(const UdpPortOptions& first,
                                                 std::span<const UdpRail> wanted, uint32_t most) {
  auto routed = UdpPort::open(first);
  if (!routed) return fail(std::move(routed.error()));
  std::unique_ptr<UdpRails> rails(new UdpRails);
  SocketAddress own = (*routed)->address();
  own.set_port(0);
  rails->ports_.push_back(std::move(*routed));
  const auto is_routed = [&](const UdpRail& rail) { return rail.address == own; };
  if (std::ranges::none_of(wanted, is_routed)) return rails;
  for (const UdpRail& rail : wanted) {
    if (is_routed(rail) || rail.address.family() != own.family()) continue;
    if (rails->count() >= std::min(most, sap::kMaxRails)) break;
    UdpPortOptions options = first;
    options.interface = rail.interface;
    options.address = rail.address;
    rails->add(options);
  }
  return rails;
}

void UdpRails::add(const UdpPortOptions& options) {
  auto port = UdpPort::open(options);
  if (port) return ports_.push_back(std::move(*port));
  SLIME_WARN("CollNet does without %s (%s): %s", options.interface.c_str(),
             options.address.host().c_str(), port.error().what.c_str());
}

std::string UdpRails::name_of(uint32_t rail) const {
  const UdpPort& port = *ports_[rail];
  const std::string host = port.address().host();
  return port.interface().empty() ? host : port.interface() + " (" + host + ")";
}

uint32_t UdpRails::max_packet_bytes() const {
  uint32_t least = ports_[0]->max_packet_bytes();
  for (const auto& port : ports_) least = std::min(least, port->max_packet_bytes());
  return least;
}

void UdpRails::keep(uint32_t rails) {
  for (uint32_t rail = count(); rail-- > 0;) {
    if ((rails >> rail & 1) != 0) continue;
    closed_ += ports_[rail]->counters();
    ports_.erase(ports_.begin() + rail);
  }
}

void UdpRails::set_switches(const std::vector<ShardPorts>& switches) {
  for (const auto& port : ports_) port->set_switches(switches);
}

void UdpRails::flush() {
  for (const auto& port : ports_) port->flush();
}

void UdpRails::receive(DatagramUser& user, uint64_t now_ns) {
  for (const auto& port : ports_) port->receive(user, now_ns);
}

UdpCounters UdpRails::counters() const {
  UdpCounters sum = closed_;
  for (const auto& port : ports_) sum += port->counters();
  return sum;
}

}  // namespace slime
