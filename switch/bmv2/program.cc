#include "switch/bmv2/program.h"

#include <arpa/inet.h>

#include <bit>

namespace slime::net::p4 {

uint32_t ipv4_of(const SocketAddress& address) {
  return ntohl(reinterpret_cast<const sockaddr_in*>(address.data())->sin_addr.s_addr);
}

Bmv2Entry own_address(const SocketAddress& address, uint64_t mac) {
  return {"SwitchIngress.own.addresses",
          {{"bridge.address", 32, ipv4_of(address)}},
          {"SwitchIngress.own.own", {{"mac", 48, mac}}}};
}

Bmv2Entry way_to(uint64_t mac, uint16_t port) {
  return {kForwarding,
          {{"hdr.ethernet.destination", 48, mac}},
          {"SwitchIngress.bridge.forward", {{"port", 9, port}}}};
}

Bmv2Entry no_way_to(uint64_t mac) {
  return {
      kForwarding, {{"hdr.ethernet.destination", 48, mac}}, {"SwitchIngress.bridge.discard", {}}};
}

Bmv2Action flood() { return {"SwitchIngress.bridge.flood", {{"group", 16, kFloodGroup}}}; }

Bmv2Action take(const JobSpec& spec, const Layout& layout, const Hosts& hosts) {
  const uint64_t all = (uint64_t{1} << spec.child_count()) - 1;
  const uint16_t parent_port =
      spec.parent ? hosts.at(ipv4_of(spec.parent->address)).port : uint16_t{0};
  return {"SwitchIngress.aggregate.job.take",
          {{"index", 16, layout.index},
           {"generation", 8, spec.generation},
           {"token", 32, spec.token},
           {"first_slot", 32, layout.first_slot},
           {"slots", 32, spec.slots},
           {"all", 32, all},
           {"max_lanes", 16, spec.max_lanes},
           {"formats", 8, spec.formats},
           {"port", 16, layout.address.port()},
           {"shard_mask", 16, layout.shards - 1},
           {"shard_bits", 8, static_cast<uint64_t>(std::countr_zero(layout.shards))},
           {"rail_mask", 16, spec.rails - 1},
           {"group", 16, group_of(layout.index, 0)},
           {"children_are_switches", 1, spec.children_are_switches},
           {"inner", 1, spec.parent.has_value()},
           {"parent_child", 8, spec.parent ? spec.parent->child : 0u},
           {"parent_port", 9, parent_port}}};
}

Bmv2Entry job_entry(const JobSpec& spec, const Layout& layout, const Hosts& hosts) {
  return {kJobTable, {{"hdr.sap.job", 16, spec.job}}, take(spec, layout, hosts)};
}

namespace {

struct End {
  SocketAddress address;
  bool above;
  uint32_t child, rail;
  uint16_t number;
};

Bmv2Entry source_of(uint16_t job, const End& end) {
  return {"SwitchIngress.aggregate.job.sources",
          {{"hdr.sap.job", 16, job},
           {"meta.from_above", 1, end.above},
           {"hdr.sap.child", 8, end.child},
           {"hdr.ipv4.source", 32, ipv4_of(end.address)},
           {"hdr.udp.source", 16, end.address.port()}},
          {"SwitchIngress.aggregate.job.bound", {{"rail", 16, end.rail}}}};
}

Bmv2Entry destination_of(uint16_t job, const End& end, const Hosts& hosts) {
  const uint32_t address = ipv4_of(end.address);
  return {"SwitchEgress.ends",
          {{"hdr.sap.job", 16, job}, {"end", 16, end.number}},
          {"SwitchEgress.send",
           {{"mac", 48, hosts.at(address).mac},
            {"address", 32, address},
            {"udp_port", 16, end.address.port()}}}};
}

}  // namespace

std::vector<Bmv2Entry> address_entries(const JobSpec& spec, const Hosts& hosts) {
  std::vector<Bmv2Entry> entries;
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

}  // namespace slime::net::p4
