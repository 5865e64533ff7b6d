// A job for a new communicator on each switch: how many slots and lanes to ask for, who asks, and
// how all ranks come to the same jobs. Part of setup.h.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "collnet/comm/setup.h"

#include "settings/times.h"

namespace slime {
namespace {

// On the way per rank: what socket buffers of 208 KiB (net.core.rmem_max, as kernels have it) hold
// of a few ranks, and enough for 1 GB/s at 100 us.
constexpr uint32_t kBytesOnTheWay = 128 << 10;
// The same of all ranks together, towards one switch: the packets to a software switch share the
// queue of its link. Eight ranks with 128 KiB each sent every tenth packet again where that queue
// held 50 ms of 100 Mbit/s.
constexpr uint32_t kBytesToSwitch = 512 << 10;
constexpr uint32_t kFewestSlots = 4, kMostSlots = 64;

// Of the jobs on all switches together.
JobShape wanted_shape(const Setup& setup, std::span<const CommMember> members) {
  const Settings& settings = setup.settings();
  JobShape wanted;
  wanted.lanes =
      settings.switch_lanes > 0 ? static_cast<uint32_t>(settings.switch_lanes) : sap::kMaxLanes;
  for (const CommMember& member : members) wanted.lanes = std::min(wanted.lanes, member.lanes);
  if (settings.switch_slots > 0) {
    wanted.slots = static_cast<uint32_t>(settings.switch_slots);
    return wanted;
  }
  const auto switches = static_cast<uint32_t>(
      std::max(setup.config->switches.size(), setup.config->job.branches.size()));
  const uint32_t ranks_each = (setup.ring->size() + switches - 1) / switches;
  const uint32_t bytes = std::min(kBytesOnTheWay, kBytesToSwitch / ranks_each);
  wanted.slots = std::clamp(bytes / (4 * wanted.lanes), kFewestSlots, kMostSlots);
  // Every rail, which has a socket of its own, is to carry some to every switch.
  if (setup.attachments.size() > 1) wanted.slots *= setup.config->members.rails;
  return wanted;
}

// A switch takes a part of each operation by its weight, and so of what is on the way.
uint32_t slots_of(const CommConfig& config, const NamedSwitch& named, uint32_t slots) {
  uint32_t weights = 0;
  for (const NamedSwitch& one : config.switches) weights += one.weight;
  return static_cast<uint32_t>((uint64_t{slots} * named.weight + weights - 1) / weights);
}

// Of connecting, and of the answer. A switch that the ranks can do without is not waited for
// longer.
uint64_t answer_limit(const Setup& setup, uint64_t part_ns) {
  return setup.settings().switch_optional ? std::min(times::kSwitchAnswer, part_ns) : part_ns;
}

// Of one switch, which may be lost from the start if that is allowed.
Result<Announcement> ask_one(const Setup& setup, SwitchAttachment& attachment,
                             const JobShape& wanted, uint64_t timeout_ns) {
  auto asked = attachment.ask(wanted, timeout_ns);
  if (asked) return announcement_of(*asked);
  const auto token = random_number<uint32_t>();
  if (!setup.settings().switch_optional || !token) return fail(std::move(asked.error()));
  SLIME_WARN(
      "%s: without %s: %s", attachment.name().c_str(),
      setup.attachments.size() > 1 ? "this switch" : "a switch, the ranks sum up for each other",
      asked.error().what.c_str());
  return Announcement{.from = Announcement::From::kRanks,
                      .slots = wanted.slots,
                      .lanes = wanted.lanes,
                      .formats = wanted.formats,
                      .token = *token};
}

Result<void> ask_each(const Setup& setup, const JobShape& wanted, std::span<Announcement> jobs) {
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].from == Announcement::From::kRanks) {  // a switch that could not be had before
      jobs[i].lanes = wanted.lanes;
      jobs[i].formats = wanted.formats;
      continue;
    }
    SwitchAttachment& attachment = *setup.attachments[i];
    const JobShape part = {slots_of(*setup.config, attachment.named(), wanted.slots), wanted.lanes,
                           wanted.formats};
    // Connecting and asking may take this long each, for every switch, and time must be left for
    // the gather that carries the result to the other ranks.
    const uint64_t part_ns = setup.left_ns() / (2 * (jobs.size() - i) + 1);
    auto asked = ask_one(setup, attachment, part, answer_limit(setup, part_ns));
    if (!asked) {
      std::ranges::fill(jobs, Announcement{});
      return fail(std::move(asked.error()));
    }
    jobs[i] = *asked;
  }
  return {};
}

// Packets have the same lanes and formats on all switches, so that it does not matter for the
// result which of them sums up a part: what all of them grant is asked of each.
Result<void> ask_switches(const Setup& setup, JobShape wanted, std::span<Announcement> jobs) {
  const auto lost = [](const Announcement& job) { return job.from == Announcement::From::kRanks; };
  for (;;) {
    auto asked = ask_each(setup, wanted, jobs);
    for (const Announcement& job : jobs) {
      wanted.lanes = std::min(wanted.lanes, job.lanes);
      wanted.formats &= job.formats;
    }
    const auto fits = [&](const Announcement& job) {
      return job.lanes == wanted.lanes && job.formats == wanted.formats;
    };
    if (asked && std::ranges::all_of(jobs, lost)) {
      // The switches that are found later may have no other formats.
      for (Announcement& job : jobs) job.formats = sap::kWordFormats;
      return asked;
    }
    if (!asked || std::ranges::all_of(jobs, fits)) return asked;
    for (const auto& attachment : setup.attachments) attachment->withdraw();
  }
}

// The first rank of each branch asks its leaf. Then the grants are gathered, and all ranks judge
// the same list, so that all decide alike: a job, no job, or the ranks among themselves.
Result<std::vector<Announcement>> obtain_part(const Setup& setup,
                                              std::span<const CommMember> members) {
  const CommConfig& config = *setup.config;
  std::vector<Announcement> grants(members.size());
  Announcement& own = grants[setup.ring->rank()];
  Result<control::JobGrant> asked = control::JobGrant{};
  if (config.leader() == setup.ring->rank()) {
    const JobShape wanted = wanted_shape(setup, members);
    own.slots = wanted.slots;
    own.lanes = wanted.lanes;
    const auto token = random_number<uint32_t>();
    asked = token ? setup.attachments[0]->ask(wanted, answer_limit(setup, setup.left_ns() / 3))
                  : fail(token.error());
    if (token) own.token = *token;
    if (asked) own = announcement_of(*asked);
  }
  auto gathered = setup.gather(&grants);
  if (!gathered) return fail(std::move(gathered.error()));
  Result<void> whole = check_parts(config.job.branches, grants);
  Announcement grant = grants[config.leader()];
  if (!whole && config.optional) {
    SLIME_WARN("%s: without switches, the ranks sum up for each other: %s", config.name.c_str(),
               (asked ? whole.error() : asked.error()).what.c_str());
    setup.attachments[0]->withdraw();
    grant = {.from = Announcement::From::kRanks,
             .slots = grants[0].slots,
             .lanes = grants[0].lanes,
             .formats = sap::kWordFormats,  // the switches that are found later may have no others
             .token = grants[0].token};
  } else if (!asked) {
    return fail(std::move(asked.error()));
  } else if (!whole) {
    return fail(std::move(whole.error()));
  }
  auto sound = check_announcement(grant);
  if (!sound) return fail(std::move(sound.error()));
  return std::vector{grant};
}

}  // namespace

Result<std::vector<Announcement>> obtain_jobs(const Setup& setup,
                                              std::span<const CommMember> members) {
  if (setup.config->is_tree()) return obtain_part(setup, members);
  const size_t count = setup.attachments.size();
  std::vector<Announcement> jobs(count * members.size());
  Result<void> asked;
  if (setup.ring->rank() == 0) {
    asked = ask_switches(setup, wanted_shape(setup, members), std::span(jobs).first(count));
  }
  auto gathered = setup.gather(&jobs, count);
  if (!asked) return fail(std::move(asked.error()));
  if (!gathered) return fail(std::move(gathered.error()));
  jobs.resize(count);  // those of rank 0
  for (const Announcement& job : jobs) {
    if (job.from == Announcement::From::kNone) {
      return fail(Status::kRemote, "rank 0 got no job from the switch%s at %s; %s",
                  count > 1 ? "es" : "", setup.settings().switch_address.c_str(), kCauseElsewhere);
    }
    auto sound = check_announcement(job);
    if (!sound) return fail(std::move(sound.error()));
  }
  return jobs;
}

}  // namespace slime
