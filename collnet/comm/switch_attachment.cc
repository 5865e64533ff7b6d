#include "collnet/comm/switch_attachment.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/log.h"
#include "settings/times.h"

namespace slime {
namespace {

constexpr uint32_t kMostRetries = 4;

}  // namespace

SwitchAttachment::SwitchAttachment(CommConfig& config, uint32_t index)
    : config_(config), index_(index), rails_(config.members.rails), job_(config.job) {
  std::iota(rails_.begin(), rails_.end(), 0);
  // With a list of switches, place_in_job() knows the first only.
  job_.branches[job_.branch].control = named().control;
}

std::string SwitchAttachment::name() const {
  if (config_.switches.size() == 1) return config_.name;
  return config_.name + ", switch at " + named().control.to_string();
}

Result<control::JobGrant> SwitchAttachment::ask(const JobShape& wanted, uint64_t timeout_ns) {
  auto client = SwitchClient::open(named().addresses, config_.who, timeout_ns);
  if (!client) return fail(std::move(client.error()));
  auto grant = config_.request_job(**client, index_, rails_, wanted, timeout_ns);
  if (!grant) return grant;
  lease_.emplace(LeaseTerms{named().addresses, config_.who, grant->job, grant->lease_ms},
                 std::move(*client), config_.keeper);
  return grant;
}

Result<void> SwitchAttachment::use_switch(const Announcement& grant) {
  auto address = SocketAddress::unpack(grant.address);
  if (!address) return fail(std::move(address.error()));
  data_ = {*address, grant.shards};
  job_.route = {.job = grant.job,
                .generation = grant.generation,
                .token = grant.token,
                .shards = grant.shards,
                .rails = static_cast<uint32_t>(rails_.size())};
  return {};
}

Result<void> SwitchAttachment::join(const Announcement& grant, uint64_t now_ns) {
  const bool direct = grant.from == Announcement::From::kRanks;
  job_.slots = grant.slots;
  job_.lanes = grant.lanes;
  job_.formats = grant.formats;
  job_.route = {
      .job = grant.job, .generation = grant.generation, .token = grant.token, .direct = direct};
  Result<void> used = direct ? Result<void>{} : use_switch(grant);
  if (!used) return used;
  auto worker = Worker::open(job_, *this);
  if (!worker) return fail(std::move(worker.error()));
  worker_ = std::move(*worker);
  if (!direct) return used;
  auto served = serve_slots({}, now_ns);
  start_reattachment(now_ns);
  return served;
}

// Packets -----------------------------------------------------------------------------------------

// A rank that serves slots receives packets for its shard and for its worker on one port.
// Contributions, and questions that a rank asks its switch, are for the shard; all others are for
// the worker.
void SwitchAttachment::on_datagram(const sap::Header& header, std::span<const std::byte> datagram,
                                   const SocketAddress& from, uint64_t now_ns) {
  const bool asks_peer = (header.flags & sap::flag::kFallback) != 0;
  const bool for_server =
      header.type == sap::Type::kContribution || (header.type == sap::Type::kQuery && !asks_peer);
  if (!for_server) {
    return worker_->on_packet(header, datagram.subspan(sap::kHeaderBytes), now_ns);
  }
  // Before this rank has moved too, what comes is dropped; the time-out sends it again.
  if (served_) served_->handle(datagram, from, now_ns, *this);
}

void SwitchAttachment::poll(uint64_t now_ns) {
  worker_->poll(now_ns);
  if (reattachment_) reattachment_->poll(now_ns);
}

void SwitchAttachment::send(const Destination& to, std::span<const std::byte> datagram) {
  if (to.kind == Destination::Kind::kRank) {
    return config_.port->send(rails_[0], config_.members.on(rails_[0])[to.index], datagram);
  }
  SocketAddress shard = data_.first;
  shard.set_port(static_cast<uint16_t>(shard.port() + to.index));
  config_.port->send(rails_[to.rail], shard, datagram);
}

void SwitchAttachment::send(const net::Outgoing& packet, std::span<const SocketAddress> to) {
  std::array<std::byte, sap::kMaxPacketBytes> bytes;
  std::copy(packet.header.begin(), packet.header.end(), bytes.begin());
  std::copy(packet.payload.begin(), packet.payload.end(), bytes.begin() + sap::kHeaderBytes);
  const size_t size = sap::kHeaderBytes + packet.payload.size();
  for (const SocketAddress& member : to) {
    config_.port->send(rails_[0], member, std::span(bytes).first(size));
  }
}

// Moves -------------------------------------------------------------------------------------------

bool SwitchAttachment::wants_move(bool may_return, uint64_t now_ns) const {
  const bool found = may_return && reattachment_ &&
                     (reattachment_->leaf_ready() || reattachment_->granted(now_ns));
  return worker_->health().trouble() || found;
}

// Between ranks trouble is a result that was found damaged: they try that round again, afresh. A
// few times; if nothing is completed meanwhile, then it is not chance.
bool SwitchAttachment::is_stuck() {
  if (on_switch() || !worker_->health().trouble()) return false;
  const uint64_t bytes = worker_->counters().bytes;
  retries_ = bytes == retried_at_ ? retries_ + 1 : 1;
  retried_at_ = bytes;
  return retries_ > kMostRetries;
}

// Rank 0's announcement decides: a job that it got, a leaf that is ready, or a token for the time
// without a switch. The tokens of the other ranks are not used.
Result<Announcement> SwitchAttachment::begin_move() {
  worker_->pause();
  Announcement own;
  if (reattachment_ && reattachment_->grant()) own = announcement_of(*reattachment_->grant());
  if (own.from == Announcement::From::kNone) {
    const auto token = random_number<uint32_t>();
    if (!token) return fail(token.error());
    own.token = *token;
    if (reattachment_ && reattachment_->leaf_ready()) own.from = Announcement::From::kAskAll;
  }
  own.lost_rails = static_cast<uint8_t>(worker_->health().lost_rails());
  own.trouble = worker_->health().trouble() ? 1 : 0;
  return own;
}

// On a tree each leaf must be asked, by the first rank below it, and all at once: when rank 0's
// leaf is there again, it announces kAskAll, and in that move all leaders ask their leaves. A
// second move compares the grants: the ranks return if these are one job, and give them back if
// not.
Result<void> SwitchAttachment::move(std::span<const Announcement> announced,
                                    std::span<const uint32_t> epochs, uint64_t now_ns) {
  Result<void> whole;
  const Announcement::From to = announced[0].from;
  if (to == Announcement::From::kSwitch) {
    if (config_.is_tree()) whole = check_parts(config_.job.branches, announced);
    if (whole) return return_to_switch(announced[config_.leader()], epochs, now_ns);
  }
  const auto in_trouble = [](const Announcement& rank) { return rank.trouble != 0; };
  if (to == Announcement::From::kNone && std::ranges::none_of(announced, in_trouble)) {
    worker_->go_on(now_ns);
    return {};
  }
  auto left = leave_switch(announced, epochs, now_ns);
  if (!left) return left;
  if (to == Announcement::From::kAskAll) {
    ++config_.id;
    if (reattachment_) reattachment_->ask_now(config_.id, now_ns);
  }
  if (!whole && reattachment_) reattachment_->give_back(whole.error(), now_ns);
  return {};
}

Result<void> SwitchAttachment::leave_switch(std::span<const Announcement> announced,
                                            std::span<const uint32_t> epochs, uint64_t now_ns) {
  const bool left_before = !on_switch();
  ++job_.route.generation;
  job_.route.token = announced[0].token;
  drop_lost_rails(announced);
  auto served = serve_slots(epochs, now_ns);
  if (!served || left_before) return served;
  if (lease_) lease_->let_lapse();
  start_reattachment(now_ns);
  if (job_.rank == 0) {
    SLIME_WARN("%s: going on without %s, with the same results", name().c_str(),
               config_.switches.size() > 1
                   ? "this switch: the ranks sum up its part of what is under way for each other"
                   : "the switch: the ranks sum up for each other, slower");
  }
  return {};
}

// This rank becomes a switch: shard `rank` of as many shards as there are ranks. The slot machine
// starts empty, in a new generation, so no packet of the switch's time counts.
Result<void> SwitchAttachment::serve_slots(std::span<const uint32_t> epochs, uint64_t now_ns) {
  if (job_.contributors > sap::kMaxChildren) {
    return fail(Status::kRemote,
                "%s: %u ranks cannot sum up for each other, at most %u can, so that the job ends "
                "with its switches, or with a rail to one; see to these, and start the job again",
                name().c_str(), job_.contributors, sap::kMaxChildren);
  }
  job_.route = {.job = job_.route.job,
                .generation = job_.route.generation,
                .token = job_.route.token,
                .direct = true};
  net::JobSpec spec;
  spec.job = job_.route.job;
  spec.generation = job_.route.generation;
  spec.token = job_.route.token;
  spec.slots = job_.slots;
  spec.max_lanes = job_.lanes;
  spec.formats = job_.formats;
  spec.children.assign(config_.members.on(rails_[0]).begin(), config_.members.on(rails_[0]).end());
  served_ = std::make_unique<net::Shard>(job_.rank, job_.contributors);
  auto added = served_->add_job(spec);
  if (!added) return added;
  worker_->resume(job_.route, epochs, now_ns);
  return {};
}

// The slots, lanes and formats are as before (start_reattachment asks for nothing less), so the
// operations that are under way go on in the new job.
Result<void> SwitchAttachment::return_to_switch(const Announcement& grant,
                                                std::span<const uint32_t> epochs, uint64_t now_ns) {
  auto sound = check_announcement(grant);
  if (sound) sound = use_switch(grant);
  if (!sound) return sound;
  worker_->resume(job_.route, epochs, now_ns);
  served_.reset();
  returned_ns_ = now_ns;
  results_then_ = worker_->counters().results;
  if (!reattachment_) return {};
  const control::JobGrant& granted = *reattachment_->grant();
  SLIME_INFO("%s: on the switch at %s again, job %u", config_.name.c_str(),
             named().control.to_string().c_str(), granted.job.job);
  const LeaseTerms terms{named().addresses, config_.who, granted.job, granted.lease_ms};
  lease_.emplace(terms, reattachment_->take_client(), config_.keeper);
  reattachment_.reset();
  return {};
}

// All ranks have the same announcements, so all drop the same rails. If no rail would be left, all
// are kept, and tried again.
void SwitchAttachment::drop_lost_rails(std::span<const Announcement> announced) {
  uint32_t lost = 0;
  for (const Announcement& rank : announced) lost |= rank.lost_rails;
  std::vector<uint32_t> left;
  for (uint32_t rail = 0; rail < rails_.size(); ++rail) {
    if ((lost >> rail & 1) == 0) left.push_back(rails_[rail]);
  }
  if (left.empty() || left.size() == rails_.size()) return;
  for (const uint32_t rail : rails_) {
    if (std::ranges::find(left, rail) != left.end()) continue;
    SLIME_WARN(
        "%s: going on without %s, which does not reach the switch any more, here or at "
        "another rank",
        name().c_str(), config_.port->name_of(rail).c_str());
  }
  rails_ = std::move(left);
}

// A switch that the ranks lose again and again is tried less and less often; one that took the job
// and has never answered, because packets do not reach it, seldom from the beginning.
void SwitchAttachment::start_reattachment(uint64_t now_ns) {
  if (job_.rank != config_.leader() || config_.retry_ns == 0) return;
  const bool silent = lease_ && worker_->counters().results == results_then_;
  const bool steady = returned_ns_ == 0 || now_ns - returned_ns_ >= times::kSteadySwitch;
  const uint64_t grown_ns = returned_ns_ == 0 ? times::kLongestReattachPause : 2 * pause_ns_;
  pause_ns_ =
      steady && !silent ? config_.retry_ns : std::min(grown_ns, times::kLongestReattachPause);
  LeaseTerms terms{.addresses = named().addresses, .who = config_.who, .job = {}, .lease_ms = 0};
  if (lease_) terms.job = lease_->terms().job;
  const JobShape shape{job_.slots, job_.lanes, job_.formats};
  reattachment_.emplace(terms, config_.job_request(index_, rails_, shape, shape),
                        job_.rank == 0 ? pause_ns_ : Reattachment::kWhenTold, now_ns);
}

// All attachments ---------------------------------------------------------------------------------

uint32_t lost_switches(const Attachments& attachments) {
  const auto lost = [](const auto& one) { return !one->on_switch(); };
  return static_cast<uint32_t>(std::ranges::count_if(attachments, lost));
}

void accept_switches(const CommConfig& config, const Attachments& attachments) {
  std::vector<ShardPorts> switches;
  for (const auto& attachment : attachments) switches.push_back(attachment->data());
  config.port->set_switches(switches);
}

// Ranks find the switch of a packet by job, generation and token. Each switch chooses these on its
// own, so two of them may choose the same, once in 2^32.
Result<void> check_distinct(const Attachments& attachments) {
  const auto same = [](const JobRoute& one, const JobRoute& other) {
    return one.job == other.job && one.generation == other.generation && one.token == other.token;
  };
  for (size_t i = 0; i < attachments.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (!same(attachments[i]->job().route, attachments[k]->job().route)) continue;
      return fail(Status::kRemote,
                  "two switches gave jobs of the same number and token, which happens by chance "
                  "once in 2^32; start the job again");
    }
  }
  return {};
}

}  // namespace slime
