// How a session gets a job on each of its switches, and where in it each rank has its place.
//
// Rank 0 asks. On a tree, the lowest rank of each leaf asks its leaf for the workers' part there;
// the leaves and their root agree on the rest.

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "collnet/session.h"

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
constexpr uint64_t kControlTimeoutNs = 5'000'000'000;

}  // namespace

// With a list there is one branch with all ranks, and each is the child of its number.
Result<void> Session::find_place(std::span<const std::vector<NamedSwitch>> by_rank) {
  std::vector<SocketAddress> controls;
  for (const auto& named : by_rank) controls.push_back(named.front().control);
  WorkerOptions& job = team_.job;
  job.branches = branches_of(controls);
  for (uint32_t branch = 0; branch < job.branches.size(); ++branch) {
    const auto& ranks = job.branches[branch].ranks;
    const auto own = std::ranges::find(ranks, ring_->rank());
    if (own == ranks.end()) continue;
    job.branch = branch;
    job.child = static_cast<uint8_t>(own - ranks.begin());
  }
  return check_branches(job.branches);
}

// The first of each branch asks, all learn what they got.
Result<std::vector<Session::Grant>> Session::obtain_part(std::span<const Member> members) {
  std::vector<Grant> grants(members.size());
  Grant& own = grants[ring_->rank()];
  Result<control::JobGrant> asked = control::JobGrant{};
  if (team_.leader() == ring_->rank()) {
    const JobShape wanted = wanted_shape(members);
    own.slots = wanted.slots;
    own.lanes = wanted.lanes;
    const auto token = random_number<uint32_t>();
    asked = token ? shares_[0]->ask(wanted, kControlTimeoutNs) : fail(token.error());
    if (token) own.token = *token;
    if (asked) own = grant_of(*asked);
  }
  auto told =
      ring_->all_gather(std::as_writable_bytes(std::span(grants)), sizeof(Grant), deadline_ns_);
  if (!told) return fail(std::move(told.error()));
  Result<void> whole = check_parts(team_.job.branches, grants);
  Grant grant = grants[team_.leader()];
  if (!whole && fabric_.settings().switch_optional) {
    SLIME_WARN("%s: without switches, the ranks sum up for each other: %s", name().c_str(),
               (asked ? whole.error() : asked.error()).what.c_str());
    shares_[0]->withdraw();
    grant = {.from = Grant::From::kRanks,
             .slots = grants[0].slots,
             .lanes = grants[0].lanes,
             .formats = sap::kWordFormats,  // the switches that are found later may have no others
             .token = grants[0].token};
  } else if (!asked) {
    return fail(std::move(asked.error()));
  } else if (!whole) {
    return fail(std::move(whole.error()));
  }
  auto sound = check_grant(grant);
  if (!sound) return fail(std::move(sound.error()));
  return std::vector{grant};
}

// Rank 0 asks all switches, all learn what it got.
Result<std::vector<Session::Grant>> Session::obtain_jobs(std::span<const Member> members) {
  if (team_.is_tree()) return obtain_part(members);
  const size_t count = shares_.size();
  std::vector<Grant> told(count * members.size());
  Result<void> asked;
  if (ring_->rank() == 0) asked = ask_switches(wanted_shape(members), std::span(told).first(count));
  auto gathered = ring_->all_gather(std::as_writable_bytes(std::span(told)), count * sizeof(Grant),
                                    deadline_ns_);
  if (!asked) return fail(std::move(asked.error()));
  if (!gathered) return fail(std::move(gathered.error()));
  told.resize(count);
  for (size_t i = 0; i < count; ++i) {
    if (told[i].from == Grant::From::kNobody) {
      return fail(make_error(Status::kRemote, 0, "rank 0 got no job from the switch%s at %s; %s",
                             count > 1 ? "es" : "", fabric_.settings().switch_address.c_str(),
                             kToldElsewhere));
    }
    auto sound = check_grant(told[i]);
    if (!sound) return fail(std::move(sound.error()));
  }
  return told;
}

// Packets have the same lanes and formats on all switches, so that it does not matter for the
// result which of them sums up a part: what all of them grant is asked of each.
Result<void> Session::ask_switches(JobShape wanted, std::span<Grant> jobs) {
  const auto lost = [](const Grant& job) { return job.from == Grant::From::kRanks; };
  for (;;) {
    auto asked = ask_each(wanted, jobs);
    for (const Grant& job : jobs) {
      wanted.lanes = std::min(wanted.lanes, job.lanes);
      wanted.formats &= job.formats;
    }
    const auto fits = [&](const Grant& job) {
      return job.lanes == wanted.lanes && job.formats == wanted.formats;
    };
    if (asked && std::ranges::all_of(jobs, lost)) {
      // The switches that are found later may have no other formats.
      for (Grant& job : jobs) job.formats = sap::kWordFormats;
      return asked;
    }
    if (!asked || std::ranges::all_of(jobs, fits)) return asked;
    for (const auto& share : shares_) share->withdraw();
  }
}

Result<void> Session::ask_each(const JobShape& wanted, std::span<Grant> jobs) {
  for (size_t i = 0; i < shares_.size(); ++i) {
    const JobShape part = {slots_of(*shares_[i], wanted), wanted.lanes, wanted.formats};
    if (jobs[i].from == Grant::From::kRanks) {  // a switch that could not be had before
      jobs[i].lanes = wanted.lanes;
      jobs[i].formats = wanted.formats;
      continue;
    }
    const uint64_t left_ns = deadline_ns_ - std::min(fabric_.clock().now_ns(), deadline_ns_);
    // Each may take two of these, and the others must hear of it.
    const uint64_t part_ns = left_ns / (2 * (shares_.size() - i) + 1);
    auto asked = shares_[i]->ask(part, std::min(kControlTimeoutNs, part_ns));
    if (asked) {
      jobs[i] = grant_of(*asked);
      continue;
    }
    const auto token = random_number<uint32_t>();
    if (!fabric_.settings().switch_optional || !token) {
      std::ranges::fill(jobs, Grant{});
      return fail(std::move(asked.error()));
    }
    SLIME_WARN("%s: without %s: %s", shares_[i]->name().c_str(),
               shares_.size() > 1 ? "this switch" : "a switch, the ranks sum up for each other",
               asked.error().what.c_str());
    jobs[i] = {.from = Grant::From::kRanks,
               .slots = part.slots,
               .lanes = part.lanes,
               .formats = part.formats,
               .token = *token};
  }
  return {};
}

JobShape Session::wanted_shape(std::span<const Member> members) const {
  const Settings& settings = fabric_.settings();
  JobShape wanted;
  wanted.lanes =
      settings.switch_lanes > 0 ? static_cast<uint32_t>(settings.switch_lanes) : sap::kMaxLanes;
  for (const Member& member : members) wanted.lanes = std::min(wanted.lanes, member.lanes);
  if (settings.switch_slots > 0) {
    wanted.slots = static_cast<uint32_t>(settings.switch_slots);
    return wanted;
  }
  const auto switches =
      static_cast<uint32_t>(std::max(team_.switches.size(), team_.job.branches.size()));
  const uint32_t ranks_each = (ring_->size() + switches - 1) / switches;
  const uint32_t bytes = std::min(kBytesOnTheWay, kBytesToSwitch / ranks_each);
  wanted.slots = std::clamp(bytes / (4 * wanted.lanes), kFewestSlots, kMostSlots);
  // Every rail, which has a socket of its own, is to carry some to every switch.
  if (shares_.size() > 1) wanted.slots *= team_.members.rails;
  return wanted;
}

// A switch takes a part of each operation by its weight, and so of what is on the way.
uint32_t Session::slots_of(const Share& share, const JobShape& shape) const {
  uint32_t weights = 0;
  for (const NamedSwitch& named : team_.switches) weights += named.weight;
  const uint64_t part = (uint64_t{shape.slots} * share.named().weight + weights - 1) / weights;
  return static_cast<uint32_t>(part);
}

Result<void> Session::join(std::span<const Grant> jobs) {
  for (uint32_t rail = 0; rail < team_.members.rails; ++rail) {
    const auto ranks = team_.members.on(rail);
    team_.port->set_ranks(rail, {ranks.begin(), ranks.end()});
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    auto joined = shares_[i]->join(jobs[i], fabric_.clock().now_ns());
    if (!joined) return joined;
  }
  joined_ = true;
  if (ring_->rank() == 0 && team_.job.half_bits != number::HalfBits::k32 &&
      !sap::has_format(jobs[0].formats, sap::Format::kI16)) {
    SLIME_INFO(
        "%s: 16-bit floats travel as 32-bit integers in spite of "
        "NCCL_SLIME_SWITCH_HALF_BITS=%s, because the job has the formats %s only",
        name().c_str(), fabric_.settings().switch_half_bits.c_str(),
        control::format_list(jobs[0].formats).c_str());
  }
  hear_switches();
  spread_anew();
  return check_distinct();
}

}  // namespace slime
