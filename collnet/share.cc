#include "collnet/share.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/log.h"

namespace slime {

Share::Share(Team& team, uint32_t index)
    : team_(team), index_(index), rails_(team.members.rails), job_(team.job) {
  std::iota(rails_.begin(), rails_.end(), 0);
}

std::string Share::name() const {
  if (team_.switches.size() == 1) return team_.name;
  return team_.name + ", switch at " + named().control.to_string();
}

std::span<const SocketAddress> Share::on_rail(uint32_t rail) const {
  return team_.members.on(rails_[rail]);
}

control::CreateJob Share::job_of(const JobShape& wanted) const {
  control::CreateJob job;
  job.tenant = team_.who.tenant;
  job.slots_wanted = wanted.slots;
  job.lanes_wanted = wanted.lanes;
  job.formats_wanted = wanted.formats;
  for (uint32_t rail = 0; rail < rails_.size(); ++rail) {
    job.children.insert(job.children.end(), on_rail(rail).begin(), on_rail(rail).end());
  }
  job.rails = static_cast<uint32_t>(rails_.size());
  job.session = team_.id;
  job.shares = static_cast<uint32_t>(team_.switches.size());
  job.share = index_;
  return job;
}

// Of a job on a tree, what the ranks below the own leaf are.
control::JoinTree Share::part_of(control::CreateJob job) const {
  const Branch& own = team_.job.branches[team_.job.branch];
  control::JoinTree part{.tree = team_.id,
                         .contributors = job_.contributors,
                         .workers = static_cast<uint32_t>(own.ranks.size()),
                         .branches = static_cast<uint32_t>(team_.job.branches.size()),
                         .branch = team_.job.branch,
                         .shards = 0,
                         .part = std::move(job)};
  part.part.children.clear();
  for (uint32_t rail = 0; rail < rails_.size(); ++rail) {
    for (const uint32_t rank : own.ranks) part.part.children.push_back(on_rail(rail)[rank]);
  }
  return part;
}

Result<control::JobGrant> Share::ask(const JobShape& wanted, uint64_t timeout_ns) {
  control::CreateJob job = job_of(wanted);
  job.slots_least = 1;
  job.lanes_least = Worker::kLeastLanes;
  job.formats_least = sap::kWordFormats;
  auto client = SwitchClient::open(named().control, team_.who, timeout_ns);
  if (!client) return fail(std::move(client.error()));
  auto grant = team_.is_tree()
                   ? (*client)->join_tree(part_of(std::move(job)), Reattachment::kTreeNs)
                   : (*client)->create_job(job, timeout_ns);
  if (!grant) return grant;
  if (grant->slots > wanted.slots || grant->lanes > wanted.lanes ||
      grant->lanes < Worker::kLeastLanes || (grant->formats & ~wanted.formats) != 0 ||
      !sap::suffice(grant->formats)) {
    return fail(make_error(Status::kRemote, 0,
                           "the switch at %s grants %u slots of %u lanes (%s) where at most %u of "
                           "%u (%s) were asked for; is it of this release?",
                           named().control.to_string().c_str(), grant->slots, grant->lanes,
                           control::format_list(grant->formats).c_str(), wanted.slots, wanted.lanes,
                           control::format_list(wanted.formats).c_str()));
  }
  lease_.emplace(LeaseTerms{named().control, team_.who, grant->job, grant->lease_ms},
                 std::move(*client), team_.keeper);
  return grant;
}

Result<void> Share::join(const Grant& grant, uint64_t now_ns) {
  const bool direct = grant.from == Grant::From::kRanks;
  job_.job = grant.job;
  job_.generation = grant.generation;
  job_.token = grant.token;
  job_.slots = grant.slots;
  job_.lanes = grant.lanes;
  job_.formats = grant.formats;
  job_.shards = direct ? 1 : grant.shards;
  job_.rails = direct ? 1 : static_cast<uint32_t>(rails_.size());
  auto worker = Worker::open(job_, *this);
  if (!worker) return fail(std::move(worker.error()));
  worker_ = std::move(*worker);
  if (direct) {
    auto served = be_among_ranks({}, now_ns);
    seek(now_ns);
    return served;
  }
  auto address = SocketAddress::unpack(grant.address);
  if (!address) return fail(std::move(address.error()));
  data_ = {*address, grant.shards};
  return {};
}

void Share::probe(uint32_t rail) {
  const sap::Header header{.type = sap::Type::kQuery,
                           .job = job_.job,
                           .generation = job_.generation,
                           .child = job_.child,
                           .token = job_.token,
                           .slot = static_cast<uint16_t>(rail * job_.shards),
                           .epoch = sap::kFirstEpoch};
  std::byte packet[sap::kHeaderBytes];
  sap::encode(header, packet);
  send({Destination::Kind::kShard, 0, rail}, packet);
}

std::optional<uint32_t> Share::probed(const sap::Header& answer) const {
  if (!is_of_job(answer) || answer.token != job_.token || answer.type != sap::Type::kStatus) {
    return std::nullopt;
  }
  return sap::rail_of(answer.slot, job_.shards, job_.rails);
}

void Share::on_datagram(const sap::Header& header, std::span<const std::byte> datagram,
                        const SocketAddress& from, uint64_t now_ns) {
  const bool asks_peer = (header.flags & sap::flag::kFallback) != 0;
  const bool for_server =
      header.type == sap::Type::kContribution || (header.type == sap::Type::kQuery && !asks_peer);
  if (!for_server) return worker_->on_datagram(datagram, now_ns);
  // Before this rank has moved too, what comes is dropped; the time-out sends it again.
  if (served_) served_->handle(datagram, from, now_ns, *this);
}

void Share::poll(uint64_t now_ns) {
  worker_->poll(now_ns);
  if (way_back_) way_back_->poll(now_ns);
}

void Share::send(const Destination& to, std::span<const std::byte> datagram) {
  if (to.kind == Destination::Kind::kRank) {
    return team_.port->send(rails_[0], on_rail(0)[to.index], datagram);
  }
  SocketAddress shard = data_.first;
  shard.set_port(static_cast<uint16_t>(shard.port() + to.index));
  team_.port->send(rails_[to.rail], shard, datagram);
}

void Share::send(const net::Outgoing& packet, std::span<const SocketAddress> to) {
  std::array<std::byte, sap::kMaxPacketBytes> bytes;
  std::copy(packet.header.begin(), packet.header.end(), bytes.begin());
  std::copy(packet.payload.begin(), packet.payload.end(), bytes.begin() + sap::kHeaderBytes);
  const size_t size = sap::kHeaderBytes + packet.payload.size();
  for (const SocketAddress& member : to) {
    team_.port->send(rails_[0], member, std::span(bytes).first(size));
  }
}

}  // namespace slime
