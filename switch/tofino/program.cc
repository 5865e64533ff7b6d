#include "switch/tofino/program.h"

#include <set>

namespace slime::net {
namespace {

using namespace tna;

constexpr BridgeNames kBridge{.addresses = "SwitchIngress.ingress.own.addresses",
                              .own = "SwitchIngress.ingress.own.own",
                              .hosts = "SwitchIngress.ingress.frames.hosts",
                              .forward = "SwitchIngress.ingress.frames.forward",
                              .discard = "SwitchIngress.ingress.frames.discard",
                              .flood = "SwitchIngress.ingress.frames.flood"};

constexpr P4Traits kTraits{.device = "tofino2",
                           .process = "bf_switchd",
                           .lanes = kLanes,
                           .formats = sap::kWordFormats,
                           .shards = 1,
                           .slots = kSlots,
                           .jobs = kJobs,
                           .sources = kSources,
                           .hosts = kHostEntries,
                           .ports = kPorts,
                           .reject_meter = kRejectRate,
                           .bridge = kBridge};

// Of SLIME_SHARD_COUNTERS: this one and the next are apart from the others.
constexpr uint32_t kRejectsSent = 4;
// Of SLIME_JOB_COUNTERS.
constexpr uint32_t kRounds = 1;

// Entries of a job: number, generation, and rounds. The last one lets its packets take part.

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

// Halves of even rounds are in the lower half of the registers, those of odd rounds above.
TableEntry member_entry(const P4Program& program, const JobSpec& spec, const Placement& place,
                        bool odd) {
  return {"SwitchIngress.ingress.admission.members",
          {{"hdr.sap.job", 16, spec.job},
           {"hdr.sap.generation", 8, spec.generation},
           {"hdr.sap.token", 32, spec.token},
           {"odd", 1, odd}},
          {"SwitchIngress.ingress.admission.take",
           {{"first_half", 16, place.first_slot + (odd ? kSlots : 0)},
            {"last_slot", 16, spec.slots - 1},
            {"group", 16, program.group_of(place)},
            {"children_are_switches", 1, spec.children_are_switches}}}};
}

// Two for each child: one matches its packets by their source, the other sets the destination of
// packets to it. The hosts of the options have all of the job's addresses.
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

}  // namespace

TofinoProgram::TofinoProgram(P4Options options) : P4Program(kTraits, std::move(options)) {}

// Refusals are counted beside their meter, all others together.
CounterCell TofinoProgram::device_counter(uint32_t number) const {
  if (number < kRejectsSent) return {kDeviceCounts, number};
  return {kRejectCounts, number - kRejectsSent};
}

// Registers belong to a pipe, so all children of a job must come in through the same one.
std::string TofinoProgram::refusal_of(const JobSpec& spec) const {
  if (spec.rails > 1) return "the P4 program takes one rail; set NCCL_SLIME_SWITCH_RAILS=1";
  if (spec.parent) {
    return "the P4 program for Tofino is no leaf of a tree; name its control channel at all ranks, "
           "or make it the root";
  }
  std::set<uint16_t> pipes;
  for (const SocketAddress& child : spec.children) {
    pipes.insert(options().hosts.at(ipv4_of(child)).port / kPortsOfAPipe);
  }
  if (pipes.size() > 1) {
    return "its children are at ports of several pipes, which have no registers in common; connect "
           "them to ports of one pipe (128 in a row)";
  }
  return "";
}

std::vector<TableEntry> TofinoProgram::job_entries(const JobSpec& spec,
                                                   const Placement& place) const {
  std::vector<TableEntry> entries = address_entries(spec, options());
  entries.push_back(job_entry(spec, place));
  entries.push_back(generation_entry(spec));
  entries.push_back(member_entry(*this, spec, place, false));
  entries.push_back(member_entry(*this, spec, place, true));
  return entries;
}

std::vector<RegisterRange> TofinoProgram::job_registers(const JobSpec&, const Placement&) const {
  return {};
}

// Rounds are counted where they are completed, in an array of their own.
std::vector<CounterCell> TofinoProgram::job_counters(const Placement& place) const {
  auto cells = counter_row(kJobCounts, place.index, kCountsOfAJob);
  cells[kRounds] = {kRoundCounts, place.index};
  return cells;
}

}  // namespace slime::net
