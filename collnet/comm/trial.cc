// The first sums of a communicator, which show that packets of full size come through: before NCCL
// may use it.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "collnet/comm/coll_comm.h"
#include "settings/times.h"

namespace slime {
namespace {

constexpr uint32_t kTrialPackets = 8;
// What an MTU of 1500 takes of UDP over IPv6.
constexpr size_t kUsualPacket = 1452;
constexpr const char* kSmallerPackets =
    " NCCL_SLIME_SWITCH_LANES=352 makes packets that fit an MTU of 1500.";
constexpr unsigned long long kTrialSeconds = times::kTrialSum / times::kSecond;

// The elements of one packet of the trial.
uint64_t trial_elements(const SwitchAttachment& attachment) {
  return attachment.worker().payload_of({.type = DataType::kInt32}).elements_per_packet();
}

// `wrong`: a sum that came, with a check that holds for it.
Error no_first_sum(const SwitchAttachment& attachment, const int32_t* wrong) {
  const std::string control = attachment.named().control.to_string();
  const SwitchHealth& health = attachment.worker().health();
  if (health.is_damage()) {
    return make_error(Status::kRemote, 0, "the trial sums over the switch at %s: %s",
                      control.c_str(), health.trouble()->what.c_str());
  }
  if (wrong) {
    return make_error(Status::kRemote, 0,
                      "the trial sums over the switch at %s came back, and their check holds, but "
                      "%d came where %u ranks had sent 1 each: the switch answers without adding "
                      "up, so do not use it",
                      control.c_str(), *wrong, attachment.job().contributors);
  }
  if (!attachment.on_switch()) {
    return make_error(Status::kTimeout, 0,
                      "without the switch at %s the ranks sum up for each other, but no sum "
                      "came within %llu s; does a firewall let UDP through between them?",
                      control.c_str(), kTrialSeconds);
  }
  const ShardPorts data = attachment.data();
  const size_t bytes = sap::kHeaderBytes + 4 * size_t{trial_elements(attachment)};
  return make_error(Status::kTimeout, 0,
                    "the switch at %s answers, but no sum came back over UDP within %llu s "
                    "from its data address, %s; does this host reach that (the switch's "
                    "data.listen) with UDP packets of %zu bytes, and does a firewall let them "
                    "through?%s",
                    control.c_str(), kTrialSeconds,
                    control::shard_range(data.first, data.count).c_str(), bytes,
                    bytes > kUsualPacket ? kSmallerPackets : "");
}

}  // namespace

// A sum of a few packets over each switch, to see that packets of full size come through. It takes
// a ticket, but is no operation that is cut over the switches. All packets must come back. Where
// some were damaged, one that is right shows enough: a switch repeats a damaged sum for ever, so
// the operation stays open, and a move ends it, as it ends any other.
void CollComm::start_trial() {
  trial_.resize(attachments_.size());
  trial_ticket_ = tickets_++;
  for (size_t i = 0; i < attachments_.size(); ++i) {
    const SwitchAttachment& attachment = *attachments_[i];
    const uint64_t packets = std::min(kTrialPackets, attachment.job().slots);
    trial_[i].assign(packets * trial_elements(attachment), 1);
    const Operation sum{
        .send = trial_[i].data(), .receive = trial_[i].data(), .count = trial_[i].size()};
    (void)attachment.worker().start(sum, clock_.now_ns(), &trial_ticket_);
  }
}

bool CollComm::trial_came(const SwitchAttachment& attachment) const {
  const Worker& worker = attachment.worker();
  return worker.done(trial_ticket_) ||
         (worker.health().is_damage() && worker.counters().results > 0);
}

Result<void> CollComm::try_sums(uint64_t left_ns) {
  const Deadline end(clock_, std::min(left_ns, times::kTrialSum));
  (void)step_until(clock_, end, [&](uint64_t step_ns) {
    progress(step_ns);
    return failed_ ||
           std::ranges::all_of(attachments_, [&](const auto& one) { return trial_came(*one); });
  });
  if (failed_) return fail(failure_);
  const auto right = [&](int32_t sum) { return sum == static_cast<int32_t>(ring_->size()); };
  for (size_t i = 0; i < attachments_.size(); ++i) {
    const auto& attachment = attachments_[i];
    const auto wrong = std::ranges::find_if_not(trial_[i], right);
    const bool is_wrong = attachment->worker().done(trial_ticket_) && wrong != trial_[i].end();
    if (is_wrong || !trial_came(*attachment)) {
      return fail(no_first_sum(*attachment, is_wrong ? &*wrong : nullptr));
    }
  }
  return {};
}

// The control channel of a switch answers and its data ports do not, at some rank. All ranks leave
// it at once, as they do later on, and its part of the trial comes from the ranks.
Result<void> CollComm::leave_silent_switches(uint64_t left_ns) {
  for (const auto& attachment : attachments_) {
    if (!trial_came(*attachment)) {
      attachment->worker().report_trouble(no_first_sum(*attachment, nullptr));
    }
  }
  auto begun = fallback_.begin();
  if (!begun) give_up(std::move(begun.error()));
  const bool ended = step_until(clock_, Deadline(clock_, left_ns), [&](uint64_t step_ns) {
    progress(step_ns);
    return failed_ || (fallback_.idle() && done(trial_ticket_));
  });
  if (!ended && !fallback_.idle()) {
    give_up(make_error(Status::kTimeout, 0, "the ranks did not leave a switch together in time"));
  }
  return try_sums(0);
}

// What the first sums brought at this rank becomes that of all ranks. A member that sums up for the
// others goes on until all have seen their sums.
Result<CollComm::Outcomes> CollComm::gather_outcomes(const Result<void>& own,
                                                     const Deadline& deadline) {
  const bool silent = !own && !failed_ && own.error().status == Status::kTimeout;
  std::vector<uint8_t> outcomes(ring_->size());
  outcomes[ring_->rank()] = own ? kCame : silent ? kSilent : kFailed;
  auto gathered = ring_->all_gather(std::as_writable_bytes(std::span(outcomes)), 1, deadline,
                                    [&](uint64_t now_ns) { progress(now_ns); });
  if (!gathered) return fail(own ? std::move(gathered.error()) : own.error());
  return outcomes;
}

// Over a network that loses packets, a rank may begin its sums when the time of others is over, or
// have a path to the switch some seconds later. So where sums came at some ranks, the others have
// that time once more.
Result<void> CollComm::agree_on_trial(const Deadline& deadline) {
  const auto serve = [&](uint64_t now_ns) { progress(now_ns); };
  const auto half_of_rest = [&] {
    return (deadline.end_ns() - std::min(clock_.now_ns(), deadline.end_ns())) / 2;
  };
  Result<void> own = try_sums(half_of_rest());
  auto gathered = gather_outcomes(own, deadline);
  const auto count = [&](Outcome outcome) { return std::ranges::count(*gathered, outcome); };
  if (gathered && count(kFailed) == 0 && count(kCame) > 0 && count(kSilent) > 0) {
    SLIME_INFO("%s: the first sums came at %zu of %u ranks so far; the others go on to wait",
               config_->name.c_str(), static_cast<size_t>(count(kCame)), ring_->size());
    own = try_sums(half_of_rest());
    gathered = gather_outcomes(own, deadline);
  }
  if (!gathered) return fail(std::move(gathered.error()));
  Outcomes& outcomes = *gathered;
  const bool leave = config_->optional && count(kFailed) == 0;
  if (leave && count(kSilent) > 0) {
    own = leave_silent_switches(half_of_rest());
    if (failed_) return own;  // the ring may be in use; the others hear of its end
    own = agree(*ring_, own, "a first sum without a switch", deadline, serve);
  } else {
    for (uint8_t& outcome : outcomes) outcome = outcome == kCame ? 1 : 0;
    own = verdict(own, outcomes, "a first sum");
  }
  if (own && done(trial_ticket_)) trial_.clear();
  return own;
}

}  // namespace slime
