#include "switch/bmv2/bmv2_switch.h"

#include <slime/log.h>
#include <slime/switch_control.h>

#include <algorithm>
#include <bit>
#include <set>
#include <thread>

#include "switch/core/shard.h"
#include "switch/core/slots.h"

namespace slime::net {
namespace {

using std::chrono::steady_clock;

// A packet that was in the pipeline when an entry changed has left it after this time. It needs far
// less, unless a thread of bmv2 waits for a processor.
constexpr std::chrono::milliseconds kInFlight{100};

Error bad_option(const char* what, const std::string& value, const char* accepted) {
  return make_error(Status::kConfig, 0, "bmv2 with %s %s: %s", what, value.c_str(), accepted);
}

Result<void> check_hosts(const Bmv2Options& options) {
  if (options.hosts.size() >= p4::kHostEntries) {
    return fail(bad_option("hosts, in number", std::to_string(options.hosts.size()),
                           ("at most " + std::to_string(p4::kHostEntries - 1)).c_str()));
  }
  std::map<uint64_t, uint16_t> ports;
  for (const auto& [address, host] : options.hosts) {
    if (ports.try_emplace(host.mac, host.port).first->second != host.port) {
      return fail(bad_option("a MAC", "at two ports", "a host with several addresses has one"));
    }
    if (host.port >= p4::kPorts) {
      return fail(bad_option("port", std::to_string(host.port), "0 to 510 are possible"));
    }
    if (host.mac == options.mac) {
      return fail(bad_option("the MAC of a host", "that is also the switch's",
                             "give the switch one of its own"));
    }
    if (address == p4::ipv4_of(options.address)) {
      return fail(bad_option("a host at", options.address.host(), "that is the switch's address"));
    }
  }
  return {};
}

Result<void> check(const Bmv2Options& options) {
  if (options.address.is_ipv6() || options.address.is_any() || options.address.port() == 0) {
    return fail(bad_option("address", options.address.to_string(),
                           "one IPv4 address with a port is needed; the program has no IPv6"));
  }
  if (!std::has_single_bit(options.shards) || options.shards > sap::kMaxShards) {
    return fail(
        bad_option("shards", std::to_string(options.shards), "the program takes 1, 2, 4, 8 or 16"));
  }
  if (options.address.port() + options.shards > 65536) {
    return fail(bad_option("address", options.address.to_string(),
                           "each shard has a port from there on, up to 65535"));
  }
  if (options.max_lanes < 1) return fail(bad_option("max_lanes", "0", "at least 1"));
  if (!sap::suffice(options.formats)) {
    return fail(bad_option("formats", control::format_list(options.formats),
                           "i32 and u32 are needed at least"));
  }
  return check_hosts(options);
}

SwitchShape shape_of(const Bmv2Options& options) {
  const uint32_t lanes = std::min(options.max_lanes, p4::kLanes);
  return {.address = options.address,
          .shards = options.shards,
          .max_lanes = lanes,
          .slot_bytes = Slots::bytes_for(p4::kSlots, lanes),
          .formats = options.formats};
}

}  // namespace

Bmv2Switch::Bmv2Switch(Bmv2Options options)
    : options_(std::move(options)),
      shape_(shape_of(options_)),
      runtime_(options_.runtime, options_.call_ms) {}

Result<std::unique_ptr<Bmv2Switch>> Bmv2Switch::open(Bmv2Options options) {
  if (auto checked = net::check(options); !checked) return fail(std::move(checked.error()));
  std::unique_ptr<Bmv2Switch> opened(new Bmv2Switch(std::move(options)));
  if (auto done = opened->runtime_.connect(); !done) return fail(std::move(done.error()));
  if (auto done = opened->program(); !done) return fail(std::move(done.error()));
  return opened;
}

// Fills what does not depend on jobs: own address, hosts, flooding, the rate of refusals.
Result<void> Bmv2Switch::program() {
  if (auto done = runtime_.reset(); !done) return done;
  std::vector<Bmv2Entry> entries = {p4::own_address(options_.address, options_.mac),
                                    p4::no_way_to(options_.mac)};
  std::set<uint64_t> macs;
  for (const auto& [address, host] : options_.hosts) {
    if (macs.insert(host.mac).second) entries.push_back(p4::way_to(host.mac, host.port));
  }
  for (const Bmv2Entry& entry : entries) {
    if (auto added = runtime_.add(entry); !added) return fail(std::move(added.error()));
  }
  if (auto done = add_flooding(); !done) return done;
  return runtime_.limit(p4::kRejectRate, Shard::kRejectsPerSecond);
}

Result<void> Bmv2Switch::add_flooding() {
  std::set<uint16_t> ports;
  for (const auto& [address, host] : options_.hosts) ports.insert(host.port);
  auto group = runtime_.add_group(p4::kFloodGroup);
  if (!group) return fail(std::move(group.error()));
  auto replica = runtime_.add_replica(*group, 0, {ports.begin(), ports.end()});
  if (!replica) return fail(std::move(replica.error()));
  return runtime_.set_default(p4::kForwarding, p4::flood());
}

int Bmv2Switch::tend() {
  if (steady_clock::now() >= look_at_) {
    if (lost_ || !runtime_.looks_alive()) begin_again();
    look_at_ = steady_clock::now() + kLookEvery;
  }
  return static_cast<int>(kLookEvery.count());
}

void Bmv2Switch::begin_again() {
  if (!lost_) {
    SLIME_WARN("bmv2 at %s is lost, and with it %zu jobs; it is tried again every %lld ms",
               options_.runtime.to_string().c_str(), jobs_.size(),
               static_cast<long long>(kLookEvery.count()));
  }
  lost_ = true;
  for (auto& [number, job] : jobs_) job.over = true;
  auto done = runtime_.connect();
  if (done) done = program();
  if (!done) {
    if (done.error().what != trouble_) SLIME_WARN("%s", done.error().what.c_str());
    trouble_ = done.error().what;
    return;
  }
  lost_ = false;
  trouble_.clear();
  ++restarts_;
  SLIME_WARN("bmv2 at %s is programmed again; it has no jobs",
             options_.runtime.to_string().c_str());
}

Result<void> Bmv2Switch::check_address(const JobSpec& spec, const char* who,
                                       const SocketAddress& end) const {
  if (end.is_ipv6() || end.port() == 0) {
    return fail(make_error(Status::kInvalid, 0,
                           "job %u: %s %s: the P4 program takes IPv4 addresses with a port",
                           spec.job, who, end.to_string().c_str()));
  }
  if (!options_.hosts.contains(p4::ipv4_of(end))) {
    return fail(make_error(Status::kInvalid, 0,
                           "job %u: %s %s: the switch does not know where that host is; add its "
                           "MAC and port to the section hosts of slime-switchd's configuration",
                           spec.job, who, end.to_string().c_str()));
  }
  return {};
}

Result<void> Bmv2Switch::check(const JobSpec& spec) const {
  const auto refuse = [&](const char* why) {
    return fail(make_error(Status::kInvalid, 0, "job %u: %s", spec.job, why));
  };
  if (lost_) {
    return refuse("bmv2 is lost, and tried again every half second; is simple_switch running?");
  }
  // A job that no switch could serve is refused with the words of the software switch.
  if (auto possible = Shard::check(spec); !possible) return possible;
  if (spec.max_lanes > shape_.max_lanes) return refuse("packets have at most 64 lanes on bmv2");
  if (!std::has_single_bit(spec.rails)) {
    return refuse("the P4 program takes 1, 2, 4 or 8 rails; set NCCL_SLIME_SWITCH_RAILS");
  }
  if ((spec.parent || spec.children_are_switches) && options_.shards > 1) {
    return refuse("in a tree the P4 program has one shard; set data.shards to 1 on all switches");
  }
  for (const SocketAddress& child : spec.children) {
    if (auto known = check_address(spec, "child", child); !known) return known;
  }
  return spec.parent ? check_address(spec, "parent", spec.parent->address) : Result<void>();
}

size_t Bmv2Switch::sources_used() const {
  size_t used = 0;
  for (const auto& [number, job] : jobs_) {
    if (!job.over) used += job.spec.children.size() + 1;
  }
  return used;
}

// The first free range of slots that is long enough.
Result<p4::Layout> Bmv2Switch::place(const JobSpec& spec) const {
  std::map<uint32_t, uint32_t> taken;  // first slots, and how many
  std::set<uint32_t> indices;
  for (const auto& [number, job] : jobs_) {
    if (job.over) continue;
    taken[job.layout.first_slot] = job.spec.slots;
    indices.insert(job.layout.index);
  }
  p4::Layout layout{.address = options_.address, .shards = options_.shards};
  while (indices.contains(layout.index)) ++layout.index;
  for (const auto& [first, count] : taken) {
    if (first - layout.first_slot >= spec.slots) break;
    layout.first_slot = first + count;
  }
  if (layout.index < p4::kJobs && layout.first_slot + uint64_t{spec.slots} <= p4::kSlots &&
      sources_used() + spec.children.size() + 1 <= p4::kSources) {
    return layout;
  }
  return fail(make_error(Status::kNoMemory, 0,
                         "job %u: %u slots, %zu addresses of children: the P4 program has %u slots "
                         "in all (and no gap that wide is left), %u jobs and %u addresses; ask for "
                         "fewer slots, or end other jobs",
                         spec.job, spec.slots, spec.children.size(), p4::kSlots, p4::kJobs,
                         p4::kSources));
}

Result<void> Bmv2Switch::add_job(const JobSpec& spec) {
  if (auto checked = check(spec); !checked) return checked;
  if (jobs_.contains(spec.job)) {
    if (auto removed = remove_job(spec.job); !removed) return removed;
  }
  const auto layout = place(spec);
  if (!layout) return fail(layout.error());
  Job& job = jobs_[spec.job];
  job.spec = spec;
  job.layout = *layout;
  auto installed = install(job);
  // What could not be removed stays in jobs_: the next add_job or remove_job tries it again.
  if (!installed && uninstall(job)) jobs_.erase(spec.job);
  return installed;
}

Result<void> Bmv2Switch::install(Job& job) {
  if (auto done = clear(job.layout, job.spec.slots); !done) return done;
  for (uint32_t i = 0; i < p4::kCountsOfAJob; ++i) {
    const uint32_t at = job.layout.index * p4::kCountsOfAJob + i;
    if (auto done = runtime_.clear_counter(p4::kJobCounts, at); !done) return done;
  }
  if (auto done = install_groups(job); !done) return done;
  for (const Bmv2Entry& entry : p4::address_entries(job.spec, options_.hosts)) {
    auto handle = runtime_.add(entry);
    if (!handle) return fail(std::move(handle.error()));
    job.entries.push_back({entry.table, *handle});
  }
  if (job.spec.parent) {
    const uint16_t port = options_.hosts.at(p4::ipv4_of(job.spec.parent->address)).port;
    const auto session = static_cast<uint16_t>(job.layout.index);
    if (auto done = runtime_.mirror(session, port); !done) return done;
  }
  auto handle = runtime_.add(p4::job_entry(job.spec, job.layout, options_.hosts));
  if (!handle) return fail(std::move(handle.error()));
  job.entry = *handle;
  return {};
}

Result<void> Bmv2Switch::install_groups(Job& job) {
  const auto count = static_cast<uint32_t>(job.spec.child_count());
  for (uint32_t rail = 0; rail < job.spec.rails; ++rail) {
    auto group = runtime_.add_group(p4::group_of(job.layout.index, rail));
    if (!group) return fail(std::move(group.error()));
    job.groups.push_back(*group);
    for (uint32_t child = 0; child < count; ++child) {
      const uint32_t address = p4::ipv4_of(job.spec.children[rail * count + child]);
      auto replica =
          runtime_.add_replica(*group, p4::end_of(rail, child), {options_.hosts.at(address).port});
      if (!replica) return fail(std::move(replica.error()));
      job.replicas.push_back(*replica);
    }
  }
  return {};
}

Result<void> Bmv2Switch::clear(const p4::Layout& layout, uint32_t slots) {
  for (const char* array : p4::kSlotRegisters) {
    auto done =
        runtime_.clear_registers(array, 2 * layout.first_slot, 2 * (layout.first_slot + slots));
    if (!done) return done;
  }
  return {};
}

// Removes what install() has added, the job's entry first. Stops at a part that cannot be removed.
Result<void> Bmv2Switch::uninstall(Job& job) {
  if (job.over) return {};
  if (job.entry) {
    if (auto done = runtime_.remove(p4::kJobTable, *job.entry); !done) return done;
    job.entry.reset();
  }
  for (; !job.entries.empty(); job.entries.pop_back()) {
    const Handle& last = job.entries.back();
    if (auto done = runtime_.remove(last.table, last.handle); !done) return done;
  }
  for (; !job.replicas.empty(); job.replicas.pop_back()) {
    if (auto done = runtime_.remove_replica(job.replicas.back()); !done) return done;
  }
  for (; !job.groups.empty(); job.groups.pop_back()) {
    if (auto done = runtime_.remove_group(job.groups.back()); !done) return done;
  }
  return {};
}

Result<void> Bmv2Switch::remove_job(uint16_t number) {
  const auto found = jobs_.find(number);
  if (found == jobs_.end()) return fail(no_job(number));
  if (auto removed = uninstall(found->second); !removed) return removed;
  jobs_.erase(found);
  return {};
}

// Packets of the old generation are refused first; when those that had been let in have passed, the
// slots are cleared. No worker knows the new token before this returns, so nothing of the new
// generation is cleared.
Result<void> Bmv2Switch::fence(uint16_t number, uint8_t generation, uint32_t token) {
  const auto found = jobs_.find(number);
  if (found == jobs_.end() || found->second.over || !found->second.entry) {
    return fail(no_job(number));
  }
  Job& job = found->second;
  job.spec.generation = generation;
  job.spec.token = token;
  auto changed =
      runtime_.modify(p4::kJobTable, *job.entry, p4::take(job.spec, job.layout, options_.hosts));
  if (!changed) return changed;
  std::this_thread::sleep_for(kInFlight);
  return clear(job.layout, job.spec.slots);
}

// Of a job that is over: zeros, because bmv2 has lost its counters.
Result<JobTotals> Bmv2Switch::totals(uint16_t number) const {
  const auto found = jobs_.find(number);
  if (found == jobs_.end()) return fail(no_job(number));
  JobTotals totals;
  if (found->second.over) return totals;
  uint32_t at = found->second.layout.index * p4::kCountsOfAJob;
#define SLIME_FIELD(name, help)                                     \
  {                                                                 \
    const auto value = runtime_.read_counter(p4::kJobCounts, at++); \
    if (!value) return fail(value.error());                         \
    totals.name = *value;                                           \
  }
  SLIME_JOB_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
  return totals;
}

std::vector<DeviceCounter> Bmv2Switch::counters() const {
  std::vector<DeviceCounter> all;
  const auto add = [&](const char* name, const char* help) {
    const auto value = runtime_.read_counter(p4::kDeviceCounts, static_cast<uint32_t>(all.size()));
    all.push_back({name, help, value ? *value : 0});
  };
#define SLIME_FIELD(name, help) add(#name, help);
  SLIME_SHARD_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
  all.push_back(
      {"restarts", "times that the switch was programmed again after it was lost", restarts_});
  return all;
}

Error Bmv2Switch::no_job(uint16_t job) const {
  return make_error(Status::kInvalid, 0, "bmv2 at %s has no job %u",
                    options_.runtime.to_string().c_str(), job);
}

}  // namespace slime::net
