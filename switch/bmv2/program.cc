#include "switch/bmv2/program.h"

#include <bit>

#include "switch/bmv2/runtime.h"

namespace slime::net {
namespace {

using namespace v1model;

constexpr BridgeNames kBridge{.addresses = "SwitchIngress.own.addresses",
                              .own = "SwitchIngress.own.own",
                              .hosts = "SwitchIngress.bridge.hosts",
                              .forward = "SwitchIngress.bridge.forward",
                              .discard = "SwitchIngress.bridge.discard",
                              .flood = "SwitchIngress.bridge.flood"};

constexpr P4Traits kTraits{.device = "bmv2",
                           .process = "simple_switch",
                           .lanes = kLanes,
                           .formats = sap::kKnownFormats,
                           .shards = sap::kMaxShards,
                           .slots = kSlots,
                           .jobs = kJobs,
                           .sources = kSources,
                           .hosts = kHostEntries,
                           .ports = kPorts,
                           .rails = sap::kMaxRails,
                           .reject_meter = kRejectRate,
                           .bridge = kBridge};

// A job: the entry that lets its packets take part, and the entries of its children and parent.

// Values that packets of the job are compared with, and the place of its memory.
TableAction take(const P4Program& program, const JobSpec& spec, const Placement& place) {
  const P4Options& options = program.options();
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
           {"group", 16, program.group_of(place)},
           {"children_are_switches", 1, spec.children_are_switches},
           {"inner", 1, spec.parent.has_value()},
           {"parent_child", 8, spec.parent ? spec.parent->child : 0u},
           {"parent_port", 9, parent_port}}};
}

// A child on one of its rails, or the parent (`above`).
struct End {
  SocketAddress address;
  bool above;
  uint32_t child, rail;
  uint16_t number;
};

// Packets with this source count as those of a child or the parent.
TableEntry source_of(uint16_t job, const End& end) {
  return {"SwitchIngress.aggregate.job.sources",
          {{"hdr.sap.job", 16, job},
           {"meta.from_above", 1, end.above},
           {"hdr.sap.child", 8, end.child},
           {"hdr.ipv4.source", 32, ipv4_of(end.address)},
           {"hdr.udp.source", 16, end.address.port()}},
          {"SwitchIngress.aggregate.job.bound", {{"rail", 16, end.rail}}}};
}

// The destination of copies for that end.
TableEntry destination_of(uint16_t job, const End& end, const Hosts& hosts) {
  const uint32_t address = ipv4_of(end.address);
  return {"SwitchEgress.ends",
          {{"hdr.sap.job", 16, job}, {"end", 16, end.number}},
          {"SwitchEgress.send",
           {{"mac", 48, hosts.at(address).mac},
            {"address", 32, address},
            {"udp_port", 16, end.address.port()}}}};
}

// Two entries for each child and rail, and for the parent: one matches its packets by their source,
// the other sets the destination of packets to it. `hosts` has all addresses of the job.
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

}  // namespace

Bmv2Program::Bmv2Program(P4Options options) : P4Program(kTraits, std::move(options)) {}

CounterCell Bmv2Program::device_counter(uint32_t number) const { return {kDeviceCounts, number}; }

std::string Bmv2Program::refusal_of(const JobSpec& spec) const {
  if (!std::has_single_bit(spec.rails)) {
    return "the P4 program takes 1, 2, 4 or 8 rails; set NCCL_SLIME_SWITCH_RAILS";
  }
  if ((spec.parent || spec.children_are_switches) && options().shards > 1) {
    return "in a tree the P4 program has one shard; set data.shards to 1 on all switches";
  }
  return "";
}

std::vector<TableEntry> Bmv2Program::job_entries(const JobSpec& spec,
                                                 const Placement& place) const {
  std::vector<TableEntry> entries = address_entries(spec, options().hosts);
  entries.push_back({kJobTable, {{"hdr.sap.job", 16, spec.job}}, take(*this, spec, place)});
  return entries;
}

// A partial sum leaves for the parent as a mirrored copy.
std::optional<MirrorSession> Bmv2Program::job_mirror(const JobSpec& spec,
                                                     const Placement& place) const {
  if (!spec.parent) return std::nullopt;
  const uint16_t port = options().hosts.at(ipv4_of(spec.parent->address)).port;
  return MirrorSession{static_cast<uint16_t>(place.index), port};
}

std::vector<RegisterRange> Bmv2Program::job_registers(const JobSpec& spec,
                                                      const Placement& place) const {
  std::vector<RegisterRange> ranges;
  for (const char* array : kSlotRegisters) {
    ranges.push_back({array, 2 * place.first_slot, 2 * (place.first_slot + spec.slots)});
  }
  return ranges;
}

std::vector<CounterCell> Bmv2Program::job_counters(const Placement& place) const {
  return counter_row(kJobCounts, place.index, kCountsOfAJob);
}

Result<std::unique_ptr<P4Switch>> open_bmv2(P4Options options) {
  auto runtime = std::make_unique<Bmv2Runtime>(options.runtime, options.call_ms);
  return P4Switch::open(std::move(runtime), std::make_unique<Bmv2Program>(std::move(options)));
}

}  // namespace slime::net
