#include "collnet/comm/job_request.h"

#include <utility>

#include "collnet/comm/reattachment.h"
#include "collnet/worker/worker.h"

namespace slime {

control::JoinTree job_request(const CommConfig& config, uint32_t index,
                              std::span<const uint32_t> rails, const JobShape& wanted,
                              const JobShape& least) {
  const Branch& own = config.job.branches[config.job.branch];
  control::JoinTree request{.tree = config.id,
                            .contributors = config.job.contributors,
                            .workers = static_cast<uint32_t>(own.ranks.size()),
                            .branches = static_cast<uint32_t>(config.job.branches.size()),
                            .branch = config.job.branch,
                            .shards = 0,
                            .part = {}};
  control::CreateJob& job = request.part;
  job.tenant = config.who.tenant;
  job.slots_wanted = wanted.slots;
  job.lanes_wanted = wanted.lanes;
  job.formats_wanted = wanted.formats;
  job.slots_least = least.slots;
  job.lanes_least = least.lanes;
  job.formats_least = least.formats;
  for (const uint32_t rail : rails) {
    for (const uint32_t rank : own.ranks) job.children.push_back(config.members.on(rail)[rank]);
  }
  job.rails = static_cast<uint32_t>(rails.size());
  job.session = config.id;
  job.shares = static_cast<uint32_t>(config.switches.size());
  job.share = index;
  return request;
}

Result<control::JobGrant> request_job(SwitchClient& client, const CommConfig& config,
                                      uint32_t index, std::span<const uint32_t> rails,
                                      const JobShape& wanted, uint64_t timeout_ns) {
  const JobShape least{1, Worker::kLeastLanes, sap::kWordFormats};
  const control::JoinTree request = job_request(config, index, rails, wanted, least);
  auto grant = config.is_tree() ? client.join_tree(request, Reattachment::kTreeNs)
                                : client.create_job(request.part, timeout_ns);
  if (!grant) return grant;
  const bool will_do = grant->slots <= wanted.slots && grant->lanes <= wanted.lanes &&
                       grant->lanes >= Worker::kLeastLanes &&
                       (grant->formats & ~wanted.formats) == 0 && sap::suffice(grant->formats);
  if (will_do) return grant;
  return fail(make_error(Status::kRemote, 0,
                         "the switch at %s grants %u slots of %u lanes (%s) where at most %u of "
                         "%u (%s) were asked for; is it of this release?",
                         config.switches[index].control.to_string().c_str(), grant->slots,
                         grant->lanes, control::format_list(grant->formats).c_str(), wanted.slots,
                         wanted.lanes, control::format_list(wanted.formats).c_str()));
}

}  // namespace slime
