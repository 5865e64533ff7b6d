#include "collnet/comm/comm_config.h"

#include <utility>

#include "collnet/comm/lease.h"
#include "collnet/worker/worker.h"
#include "settings/times.h"

namespace slime {

control::JoinTree CommConfig::job_request(uint32_t index, std::span<const uint32_t> rails,
                                          const JobShape& wanted, const JobShape& least) const {
  const Branch& own = job.branches[job.branch];
  control::JoinTree request{.tree = id,
                            .contributors = job.contributors,
                            .workers = static_cast<uint32_t>(own.ranks.size()),
                            .branches = static_cast<uint32_t>(job.branches.size()),
                            .branch = job.branch,
                            .shards = 0,
                            .part = {}};
  control::CreateJob& part = request.part;
  part.tenant = who.tenant;
  part.slots_wanted = wanted.slots;
  part.lanes_wanted = wanted.lanes;
  part.formats_wanted = wanted.formats;
  part.slots_least = least.slots;
  part.lanes_least = least.lanes;
  part.formats_least = least.formats;
  for (const uint32_t rail : rails) {
    for (const uint32_t rank : own.ranks) part.children.push_back(members.on(rail)[rank]);
  }
  part.rails = static_cast<uint32_t>(rails.size());
  part.session = id;
  part.shares = static_cast<uint32_t>(switches.size());
  part.share = index;
  return request;
}

Result<control::JobGrant> CommConfig::request_job(SwitchClient& client, uint32_t index,
                                                  std::span<const uint32_t> rails,
                                                  const JobShape& wanted,
                                                  uint64_t timeout_ns) const {
  const JobShape least{1, Worker::kLeastLanes, sap::kWordFormats};
  const control::JoinTree request = job_request(index, rails, wanted, least);
  auto grant = is_tree() ? client.join_tree(request, times::kTreeSetup)
                         : client.create_job(request.part, timeout_ns);
  if (!grant) return grant;
  const bool will_do = grant->slots <= wanted.slots && grant->lanes <= wanted.lanes &&
                       grant->lanes >= Worker::kLeastLanes &&
                       (grant->formats & ~wanted.formats) == 0 && sap::suffice(grant->formats);
  if (will_do) return grant;
  return fail(Status::kRemote,
              "the switch at %s grants %u slots of %u lanes (%s) where at most %u of %u (%s) were "
              "asked for; is it of this release?",
              switches[index].control.to_string().c_str(), grant->slots, grant->lanes,
              control::format_list(grant->formats).c_str(), wanted.slots, wanted.lanes,
              control::format_list(wanted.formats).c_str());
}

}  // namespace slime
