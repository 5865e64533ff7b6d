// How a share gets from its switch to the ranks, and back.
//
// On a tree each leaf must be asked, by the first rank below it, and at once: when rank 0's leaf is
// there again, a move from ranks to ranks tells them to. A second one brings them together on what
// they got, if that is one job.

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "collnet/share.h"

namespace slime {
namespace {

// A switch on which the job stayed for so long was not lost at once: the next try need not wait.
constexpr uint64_t kSteadyNs = 60'000'000'000;
constexpr uint32_t kMostRetries = 4;

}  // namespace

bool Share::must_move(bool may_seek, uint64_t now_ns) const {
  const bool found = may_seek && way_back_ && (way_back_->ready() || way_back_->has_come(now_ns));
  return worker_->trouble() || found;
}

// Between ranks trouble is a result that was found damaged: they try that round again, afresh. A
// few times; if nothing is completed meanwhile, then it is not chance.
bool Share::is_stuck() {
  if (on_switch() || !worker_->trouble()) return false;
  const uint64_t bytes = worker_->counters().bytes;
  retries_ = bytes == retried_at_ ? retries_ + 1 : 1;
  retried_at_ = bytes;
  return retries_ > kMostRetries;
}

Result<Share::Grant> Share::begin_move() {
  worker_->pause();
  Grant own;
  if (way_back_ && way_back_->grant()) own = grant_of(*way_back_->grant());
  if (own.from == Grant::From::kNobody) {
    const auto token = random_number<uint32_t>();
    if (!token) return fail(token.error());
    own.token = *token;
    if (way_back_ && way_back_->ready()) own.from = Grant::From::kSought;
  }
  own.lost_rails = static_cast<uint8_t>(worker_->lost_rails());
  own.leaves = worker_->trouble() ? 1 : 0;
  return own;
}

Result<void> Share::move(std::span<const Grant> told, std::span<const uint32_t> epochs,
                         uint64_t now_ns) {
  Result<void> whole;
  const Grant::From to = told[0].from;
  if (to == Grant::From::kSwitch) {
    if (team_.is_tree()) whole = check_parts(team_.job.branches, told);
    if (whole) return come_back(told[team_.leader()], epochs, now_ns);
  }
  const auto leaves = [](const Grant& rank) { return rank.leaves != 0; };
  if (to == Grant::From::kNobody && std::ranges::none_of(told, leaves)) {
    worker_->go_on(now_ns);
    return {};
  }
  auto left = leave(told, epochs, now_ns);
  if (!left) return left;
  if (to == Grant::From::kSought) {
    ++team_.id;
    if (way_back_) way_back_->go(team_.id, now_ns);
  }
  if (!whole && way_back_) way_back_->give_back(whole.error(), now_ns);
  return {};
}

Result<void> Share::leave(std::span<const Grant> told, std::span<const uint32_t> epochs,
                          uint64_t now_ns) {
  const bool left_before = !on_switch();
  ++job_.generation;
  job_.token = told[0].token;
  drop_lost_rails(told);
  auto among = be_among_ranks(epochs, now_ns);
  if (!among || left_before) return among;
  if (lease_) lease_->let_lapse();
  seek(now_ns);
  if (job_.rank == 0) {
    SLIME_WARN("%s: going on without %s, with the same results", name().c_str(),
               team_.switches.size() > 1
                   ? "this switch: the ranks sum up its part of what is under way for each other"
                   : "the switch: the ranks sum up for each other, slower");
  }
  return {};
}

Result<void> Share::be_among_ranks(std::span<const uint32_t> epochs, uint64_t now_ns) {
  if (job_.contributors > sap::kMaxChildren) {
    return fail(make_error(Status::kRemote, 0,
                           "%s: %u ranks cannot sum up for each other, at most %u can, so that "
                           "the job ends with its switches, or with a rail to one; see to these, "
                           "and start the job again",
                           name().c_str(), job_.contributors, sap::kMaxChildren));
  }
  net::JobSpec spec;
  spec.job = job_.job;
  spec.generation = job_.generation;
  spec.token = job_.token;
  spec.slots = job_.slots;
  spec.max_lanes = job_.lanes;
  spec.formats = job_.formats;
  spec.children.assign(on_rail(0).begin(), on_rail(0).end());
  served_ = std::make_unique<net::Shard>(job_.rank, job_.contributors);
  auto added = served_->add_job(spec);
  if (!added) return added;
  worker_->resume({.job = job_.job,
                   .generation = job_.generation,
                   .token = job_.token,
                   .direct = true,
                   .epochs = epochs},
                  now_ns);
  return {};
}

Result<void> Share::come_back(const Grant& grant, std::span<const uint32_t> epochs,
                              uint64_t now_ns) {
  auto sound = check_grant(grant);
  if (!sound) return sound;
  auto address = SocketAddress::unpack(grant.address);
  if (!address) return fail(std::move(address.error()));
  data_ = {*address, grant.shards};
  job_.job = grant.job;
  job_.generation = grant.generation;
  job_.token = grant.token;
  job_.shards = grant.shards;
  job_.rails = static_cast<uint32_t>(rails_.size());
  worker_->resume({.job = grant.job,
                   .generation = grant.generation,
                   .token = grant.token,
                   .shards = grant.shards,
                   .rails = job_.rails,
                   .epochs = epochs},
                  now_ns);
  served_.reset();
  arrived_ns_ = now_ns;
  if (way_back_) take_lease();
  return {};
}

void Share::take_lease() {
  const control::JobGrant& grant = *way_back_->grant();
  SLIME_INFO("%s: on the switch at %s again, job %u", team_.name.c_str(),
             named().control.to_string().c_str(), grant.job.job);
  const LeaseTerms terms{named().control, team_.who, grant.job, grant.lease_ms};
  lease_.emplace(terms, way_back_->take_client(), team_.keeper);
  way_back_.reset();
}

// All have heard the same, so all drop the same.
void Share::drop_lost_rails(std::span<const Grant> told) {
  uint32_t lost = 0;
  for (const Grant& rank : told) lost |= rank.lost_rails;
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
        name().c_str(), team_.port->name_of(rail).c_str());
  }
  rails_ = std::move(left);
}

// A switch that the ranks lose again and again, because packets do not reach it, say, is tried less
// and less often.
void Share::seek(uint64_t now_ns) {
  if (job_.rank != team_.leader() || team_.retry_ns == 0) return;
  const bool steady = now_ns - arrived_ns_ >= kSteadyNs;
  pause_ns_ = arrived_ns_ == 0 || steady ? team_.retry_ns
                                         : std::min(2 * pause_ns_, Reattachment::kLongestPauseNs);
  LeaseTerms terms{.address = named().control, .who = team_.who, .job = {}, .lease_ms = 0};
  if (lease_) terms.job = lease_->terms().job;
  control::CreateJob job = job_of({job_.slots, job_.lanes, job_.formats});
  job.slots_least = job.slots_wanted;
  job.lanes_least = job.lanes_wanted;
  job.formats_least = job.formats_wanted;
  auto wanted = team_.is_tree() ? Reattachment::Wanted(part_of(std::move(job)))
                                : Reattachment::Wanted(std::move(job));
  way_back_.emplace(terms, std::move(wanted), job_.rank == 0 ? pause_ns_ : Reattachment::kWhenTold,
                    now_ns);
}

}  // namespace slime
