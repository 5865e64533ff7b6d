#include "switch/bmv2/entries.h"

#include <bit>

namespace slime::net::v1model {

TableEntry own_address(const SocketAddress& address, uint64_t mac) {
  return {"SwitchIngress.own.addresses",
          {{"bridge.address", 32, ipv4_of(address)}},
          {"SwitchIngress.own.own", {{"mac", 48, mac}}}};
}

TableEntry way_to(uint64_t mac, uint16_t port) {
  return {kForwarding,
          {{"hdr.ethernet.destination", 48, mac}},
          {"SwitchIngress.bridge.forward", {{"port", 9, port}}}};
}

TableEntry no_way_to(uint64_t mac) {
  return {
      kForwarding, {{"hdr.ethernet.destination", 48, mac}}, {"SwitchIngress.bridge.discard", {}}};
}

TableAction flood() { return {"SwitchIngress.bridge.flood", {{"group", 16, kFloodGroup}}}; }

namespace {

TableAction take(const JobSpec& spec, const Placement& place, const P4Options& options) {
  const uint64_t all = (uint64_t{1} << spec.child_count()) - 1;
  const uint16_t parent_port =
      spec.parent ? options.hosts.at(ipv4_of(spec.parent->address)).port : uint16_t{0};
  return {"SwitchIngress.aggregate.job.take",
          {{"index", 16, place.index},
           {"generation", 8, spec.generation},
           {"token", 32, spec.token},
           {"first_slot", 32, place.first_slot},
           {"slots", 32, spec.slots},
           {"all", 32, all},
           {"max_lanes", 16, spec.max_lanes},
           {"formats", 8, spec.formats},
           {"port", 16, options.address.port()},
           {"shard_mask", 16, options.shards - 1},
           {"shard_bits", 8, static_cast<uint64_t>(std::countr_zero(options.shards))},
           {"rail_mask", 16, spec.rails - 1},
           {"group", 16, group_of(place.index, 0)},
           {"children_are_switches", 1, spec.children_are_switches},
           {"inner", 1, spec.parent.has_value()},
           {"parent_child", 8, spec.parent ? spec.parent->child : 0u},
           {"parent_port", 9, parent_port}}};
}

struct End {
  SocketAddress address;
  bool above;
  uint32_t child, rail;
  uint16_t number;
};

TableEntry source_of(uint16_t job, const End& end) {
  return {"SwitchIngress.aggregate.job.sources",
          {{"hdr.sap.job", 16, job},
           {"meta.from_above", 1, end.above},
           {"hdr.sap.child", 8, end.child},
           {"hdr.ipv4.source", 32, ipv4_of(end.address)},
           {"hdr.udp.source", 16, end.address.port()}},
          {"SwitchIngress.aggregate.job.bound", {{"rail", 16, end.rail}}}};
}

TableEntry destination_of(uint16_t job, const End& end, const Hosts& hosts) {
  const uint32_t address = ipv4_of(end.address);
  return {"SwitchEgress.ends",
          {{"hdr.sap.job", 16, job}, {"end", 16, end.number}},
          {"SwitchEgress.send",
           {{"mac", 48, hosts.at(address).mac},
            {"address", 32, address},
            {"udp_port", 16, end.address.port()}}}};
}

}  // namespace

TableEntry job_entry(const JobSpec& spec, const Placement& place, const P4Options& options) {
  return {kJobTable, {{"hdr.sap.job", 16, spec.job}}, take(spec, place, options)};
}

std::vector<TableEntry> address_entries(const JobSpec& spec, const Hosts& hosts) {
  std::vector<TableEntry> entries;
  const auto add = [&](const End& end) {
    entries.push_back(source_of(spec.job, end));
    entries.push_back(destination_of(spec.job, end, hosts));
  };
  for (uint32_t i = 0; i < spec.children.size(); ++i) {
    const auto count = static_cast<uint32_t>(spec.child_count());
    const uint32_t rail = i / count, child = i % count;
    add({spec.children[i], false, child, rail, end_of(rail, child)});
  }
  if (spec.parent) add({spec.parent->address, true, 0, 0, kToParent});
  return entries;
}

}  // namespace slime::net::v1model
