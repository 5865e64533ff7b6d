#include "switch/tofino/entries.h"

namespace slime::net::tna {

TableEntry own_address(const SocketAddress& address, uint64_t mac) {
  return {"SwitchIngress.ingress.own.addresses",
          {{"bridge.address", 32, ipv4_of(address)}},
          {"SwitchIngress.ingress.own.own", {{"mac", 48, mac}}}};
}

TableEntry way_to(uint64_t mac, uint16_t port) {
  return {kForwarding,
          {{"hdr.ethernet.destination", 48, mac}},
          {"SwitchIngress.ingress.frames.forward", {{"port", 9, port}}}};
}

TableEntry no_way_to(uint64_t mac) {
  return {kForwarding,
          {{"hdr.ethernet.destination", 48, mac}},
          {"SwitchIngress.ingress.frames.discard", {}}};
}

TableAction flood() { return {"SwitchIngress.ingress.frames.flood", {{"group", 16, kFloodGroup}}}; }

TableEntry job_entry(const JobSpec& spec, const Placement& place) {
  return {"SwitchIngress.ingress.admission.jobs",
          {{"hdr.sap.job", 16, spec.job}},
          {"SwitchIngress.ingress.admission.known",
           {{"index", 16, place.index}, {"first_counter", 16, place.index * kCountsOfAJob}}}};
}

TableEntry generation_entry(const JobSpec& spec) {
  return {"SwitchIngress.ingress.admission.generations",
          {{"hdr.sap.job", 16, spec.job}, {"hdr.sap.generation", 8, spec.generation}},
          {"SwitchIngress.ingress.admission.current", {}}};
}

TableEntry member_entry(const JobSpec& spec, const Placement& place, bool odd) {
  return {"SwitchIngress.ingress.admission.members",
          {{"hdr.sap.job", 16, spec.job},
           {"hdr.sap.generation", 8, spec.generation},
           {"hdr.sap.token", 32, spec.token},
           {"odd", 1, odd}},
          {"SwitchIngress.ingress.admission.take",
           {{"first_half", 16, place.first_slot + (odd ? kSlots : 0)},
            {"last_slot", 16, spec.slots - 1},
            {"group", 16, group_of(place.index)},
            {"children_are_switches", 1, spec.children_are_switches}}}};
}

std::vector<TableEntry> address_entries(const JobSpec& spec, const P4Options& options) {
  const uint64_t all = (uint64_t{1} << spec.child_count()) - 1;
  std::vector<TableEntry> entries;
  for (uint32_t child = 0; child < spec.child_count(); ++child) {
    const SocketAddress& address = spec.children[child];
    const uint64_t bit = uint64_t{1} << child;
    entries.push_back({"SwitchIngress.ingress.admission.sources",
                       {{"hdr.sap.job", 16, spec.job},
                        {"hdr.sap.child", 8, child},
                        {"hdr.ipv4.source", 32, ipv4_of(address)},
                        {"hdr.udp.source", 16, address.port()},
                        {"hdr.udp.destination", 16, options.address.port()}},
                       {"SwitchIngress.ingress.admission.bound",
                        {{"own_bit", 32, bit}, {"others", 32, all & ~bit}, {"all", 32, all}}}});
    entries.push_back({"SwitchEgress.egress.ends",
                       {{"hdr.sap.job", 16, spec.job}, {"replica", 16, child}},
                       {"SwitchEgress.egress.send",
                        {{"mac", 48, options.hosts.at(ipv4_of(address)).mac},
                         {"address", 32, ipv4_of(address)},
                         {"udp_port", 16, address.port()}}}});
  }
  return entries;
}

}  // namespace slime::net::tna
