#include "collnet/comm/setup.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/net/dialer.h"

namespace slime {
namespace {

constexpr uint64_t kSocketBufferBytes = 4 << 20;      // wanted; the kernel grants what it allows
constexpr std::chrono::milliseconds kRoutePause(50);  // between two looks for a route
constexpr uint32_t kLeastPacketBytes = sap::kHeaderBytes + 4 * Worker::kLeastLanes;

number::HalfBits half_bits_of(const Settings& settings) {
  if (settings.switch_half_bits == "16") return number::HalfBits::k16;
  return settings.switch_half_bits == "auto" ? number::HalfBits::kAuto : number::HalfBits::k32;
}

// Ranks that differed would send what the switch cannot add up. 32 bits suit everybody.
number::HalfBits common_half_bits(const Setup& setup, std::span<const CommMember> members) {
  const number::HalfBits own = half_bits_of(setup.settings());
  for (size_t rank = 0; rank < members.size(); ++rank) {
    if (members[rank].half_bits == static_cast<uint32_t>(own)) continue;
    SLIME_WARN(
        "%s: NCCL_SLIME_SWITCH_HALF_BITS is %s here and something else at rank %zu, so all ranks "
        "use 32 bits; give all the same value",
        setup.config->name.c_str(), setup.settings().switch_half_bits.c_str(), rank);
    return number::HalfBits::k32;
  }
  return own;
}

// Ranks that decided each for itself what to do without a switch could decide differently: one
// would wait for packets of others that have failed. So rank 0's setting counts.
void compare_optional(const Setup& setup, std::span<const CommMember> members) {
  const bool own = setup.settings().switch_optional;
  if (own == (members[0].switch_optional != 0)) return;
  SLIME_WARN(
      "%s: NCCL_SLIME_SWITCH_OPTIONAL is %d at rank %u and %d at rank 0, whose value counts; give "
      "all ranks the same",
      setup.config->name.c_str(), own ? 1 : 0, setup.ring->rank(), own ? 0 : 1);
}

// A member finds out that others wait for it (Ring::invited) by a message without a receive, and
// only eager messages arrive so. So the announcement of a move must fit into an eager message.
Result<void> check_settings(const Setup& setup) {
  const Settings& settings = setup.settings();
  const size_t announced = setup.config->switches.size() * sizeof(Announcement);
  if (setup.ring->size() > 1 && settings.eager_max < announced) {
    return fail(Status::kConfig,
                "CollNet needs NCCL_SLIME_EAGER_MAX of at least %zu, and it is %llu", announced,
                static_cast<unsigned long long>(settings.eager_max));
  }
  if (settings.switch_lanes > 0 &&
      static_cast<uint32_t>(settings.switch_lanes) < Worker::kLeastLanes) {
    return fail(Status::kConfig,
                "NCCL_SLIME_SWITCH_LANES is %d, and a packet needs at least %u: two blocks of four "
                "words, in two copies where the operation is no sum",
                settings.switch_lanes, Worker::kLeastLanes);
  }
  return {};
}

// The narrowest path of all rails decides how many lanes a packet has.
Result<std::unique_ptr<UdpRails>> open_rails(const Setup& setup) {
  const Settings& settings = setup.settings();
  const auto most = static_cast<uint32_t>(settings.switch_rails);
  std::vector<SocketAddress> peers;
  for (const NamedSwitch& named : setup.config->switches) peers.push_back(named.control);
  std::vector<std::string> hosts;
  for (const Rail* rail : setup.devices.device(setup.device)->rails()) {
    hosts.push_back(rail->caps().oob_address);
  }
  const UdpPortOptions wanted = {
      .peers = std::move(peers),
      .buffer_bytes = settings.socket_buffer > 0 ? settings.socket_buffer : kSocketBufferBytes,
      .traffic_class = setup.options.chosen_class(settings),
      .ports = PortRange::of_setting(settings.ports)};
  const auto open = [&] {
    return UdpRails::open(wanted, udp_rails_of(hosts), most > 0 ? most : sap::kMaxRails);
  };
  auto port = open();
  // A network that starts has no route to the switch yet. The jobs need most of the time, so it is
  // the first rail that is waited for; others that have no route by then carry nothing.
  const Deadline limit(setup.devices.clock(), setup.left_ns() / 3);
  while (!port && Dialer::may_pass(port.error()) && !limit.passed()) {
    std::this_thread::sleep_for(kRoutePause);
    port = open();
  }
  if (!port) return port;
  const uint32_t bytes = (*port)->max_packet_bytes();
  if (bytes >= kLeastPacketBytes) return port;
  return fail(Status::kConfig,
              "the path to the switch at %s takes %u bytes a packet; %u are needed: raise the MTU",
              settings.switch_address.c_str(), bytes, kLeastPacketBytes);
}

// What this member needs for itself.
Result<void> prepare(const Setup& setup) {
  const Settings& settings = setup.settings();
  CommConfig& config = *setup.config;
  const auto& rails = setup.devices.device(setup.device)->rails();
  const auto own = SocketAddress::parse(rails.front()->caps().oob_address);
  const Deadline limit(setup.devices.clock(), setup.left_ns() / 3);  // the rest needs time, too
  auto switches = parse_switches(settings.switch_address, own ? own->family() : AF_INET, limit);
  if (!switches) return fail(std::move(switches.error()));
  config.switches = std::move(*switches);
  auto sound = check_settings(setup);
  if (!sound) return sound;
  auto keeper = Housekeeper::get("keeps jobs on the switch alive",
                                 setup.devices.device(setup.device)->properties().near);
  if (!keeper) return fail(std::move(keeper.error()));
  config.keeper = std::move(*keeper);
  config.retry_ns = seconds_to_ns(settings.switch_retry);
  config.job.rank = setup.ring->rank();
  config.job.contributors = setup.ring->size();
  config.job.switch_timeout_ns = seconds_to_ns(settings.switch_timeout);
  config.job.request_timeout_ns = seconds_to_ns(settings.request_timeout);
  config.who.tenant = settings.switch_tenant;
  if (!settings.switch_key_file.empty()) {
    auto key = SecretKey::read_file(settings.switch_key_file);
    if (!key) return fail(std::move(key.error()));
    config.who.key = *key;
  }
  auto port = open_rails(setup);
  if (!port) return fail(std::move(port.error()));
  config.port = std::move(*port);
  return {};
}

Result<CommMember> own_member(const Setup& setup) {
  const CommConfig& config = *setup.config;
  const auto id = random_number<uint64_t>();
  if (!id) return fail(id.error());
  CommMember own{.id = *id | 1,
                 .advice = setup.advice,
                 .lanes = (config.port->max_packet_bytes() - uint32_t{sap::kHeaderBytes}) / 4,
                 .ready = 1,
                 .half_bits = static_cast<uint32_t>(half_bits_of(setup.settings())),
                 .rails = config.port->count(),
                 .guesses = 1,
                 .switch_count = static_cast<uint16_t>(config.switches.size()),
                 .switch_optional = setup.settings().switch_optional ? uint16_t{1} : uint16_t{0}};
  for (uint32_t i = 0; i < own.rails; ++i) {
    own.addresses[i] = config.port->port(i).address().pack();
  }
  for (uint32_t i = 0; i < own.switch_count; ++i) {
    own.switches[i] = {config.switches[i].control.pack(), config.switches[i].weight};
  }
  return own;
}

// Where this rank is in the job. With a list of switches there is one branch with all ranks, and
// each is the child of its number.
Result<void> place_in_job(std::span<const std::vector<NamedSwitch>> by_rank, WorkerOptions* job) {
  std::vector<SocketAddress> controls;
  for (const auto& named : by_rank) controls.push_back(named.front().control);
  job->branches = branches_of(controls);
  for (uint32_t branch = 0; branch < job->branches.size(); ++branch) {
    const auto& ranks = job->branches[branch].ranks;
    const auto own = std::ranges::find(ranks, job->rank);
    if (own == ranks.end()) continue;
    job->branch = branch;
    job->child = static_cast<uint8_t>(own - ranks.begin());
  }
  return check_branches(job->branches);
}

// Before anything whose size depends on the version.
Result<void> compare_versions(const Setup& setup) {
  std::vector<uint32_t> versions(setup.ring->size());
  versions[setup.ring->rank()] = kCommVersion;
  auto gathered = setup.gather(&versions);
  return gathered ? check_versions(versions) : gathered;
}

// Gathers the description of every member. Fails where they differ in something that must be the
// same.
Result<std::vector<CommMember>> meet(const Setup& setup) {
  CommConfig& config = *setup.config;
  std::vector<CommMember> members(setup.ring->size());
  Result<void> prepared = config.port ? Result<void>{} : prepare(setup);
  if (prepared) {
    auto own = own_member(setup);
    if (own)
      members[setup.ring->rank()] = *own;
    else
      prepared = fail(std::move(own.error()));
  }
  auto agreed = setup.gather(&members);
  if (!agreed) return fail(std::move(agreed.error()));
  std::vector<uint8_t> ready;
  for (const CommMember& member : members) ready.push_back(member.ready == 1);
  agreed = verdict(prepared, ready, "preparing for the switch");
  if (agreed) agreed = check_advice(members);
  if (!agreed) return fail(std::move(agreed.error()));
  auto addresses = addresses_of(members);
  if (!addresses) return fail(std::move(addresses.error()));
  use_rails(&config, std::move(*addresses));
  config.id = members.front().id;
  config.job.half_bits = common_half_bits(setup, members);
  compare_optional(setup, members);
  config.optional = members[0].switch_optional != 0;
  config.job.guesses =
      std::ranges::all_of(members, [](const CommMember& m) { return m.guesses == 1; });
  auto named = switches_of(members);
  if (!named) return fail(std::move(named.error()));
  auto placed = place_in_job(*named, &config.job);
  if (!placed) return fail(std::move(placed.error()));
  return members;
}

// Workers on the jobs that were granted. From here on packets of members and switches are accepted.
Result<void> join(const Setup& setup, std::span<const Announcement> jobs) {
  CommConfig& config = *setup.config;
  for (uint32_t rail = 0; rail < config.members.rails; ++rail) {
    const auto ranks = config.members.on(rail);
    config.port->set_ranks(rail, {ranks.begin(), ranks.end()});
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    auto joined = setup.attachments[i]->join(jobs[i], setup.devices.clock().now_ns());
    if (!joined) return joined;
  }
  if (setup.ring->rank() == 0 && config.job.half_bits != number::HalfBits::k32 &&
      !sap::has_format(jobs[0].formats, sap::Format::kI16)) {
    SLIME_INFO(
        "%s: 16-bit floats travel as 32-bit integers in spite of "
        "NCCL_SLIME_SWITCH_HALF_BITS=%s, because the job has the formats %s only",
        config.name.c_str(), setup.settings().switch_half_bits.c_str(),
        control::format_list(jobs[0].formats).c_str());
  }
  accept_switches(config, setup.attachments);
  return check_distinct(setup.attachments);
}

// Once more, over fewer rails, for as long as some do not reach the switch.
Result<void> set_up_jobs(Setup& setup) {
  for (;;) {
    auto members = meet(setup);
    if (!members) return fail(std::move(members.error()));
    setup.attachments.clear();
    for (uint32_t i = 0; i < setup.config->switches.size(); ++i) {
      setup.attachments.push_back(std::make_unique<SwitchAttachment>(*setup.config, i));
    }
    auto jobs = obtain_jobs(setup, *members);
    if (!jobs) return fail(std::move(jobs.error()));
    // All are ready to receive before the first sends.
    auto joined = agree(*setup.ring, join(setup, *jobs), "joining the job", setup.deadline);
    if (!joined) return joined;
    auto work = all_rails_work(setup);
    if (!work) return fail(std::move(work.error()));
    if (*work) return {};
  }
}

}  // namespace

Result<void> set_up_members(Setup& setup, Listener& listener, std::span<const Handle> handles,
                            uint32_t rank) {
  auto ring = Ring::connect(setup.devices, setup.device, listener, handles, rank, setup.deadline,
                            setup.options);
  if (!ring) return fail(std::move(ring.error()));
  setup.ring = std::move(*ring);
  auto done = compare_versions(setup);
  return done ? set_up_jobs(setup) : done;
}

Result<void> agree(Ring& ring, const Result<void>& own, const char* on, const Deadline& deadline,
                   const Ring::Meanwhile& meanwhile) {
  std::vector<uint8_t> succeeded(ring.size());
  succeeded[ring.rank()] = own ? 1 : 0;
  auto gathered =
      ring.all_gather(std::as_writable_bytes(std::span(succeeded)), 1, deadline, meanwhile);
  if (own && !gathered) return gathered;
  return verdict(own, succeeded, on);
}

}  // namespace slime
