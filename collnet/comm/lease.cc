#include "collnet/comm/lease.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "settings/times.h"

namespace slime {
namespace {

// Of Reattachment.
constexpr uint64_t kStepNs = 1'000'000;       // between two looks for an answer
constexpr uint64_t kAskAgainNs = 20'000'000;  // while the tree is not complete
constexpr uint64_t kAgainNs = 100'000'000;    // after a failure, while the others still wait

uint64_t pause_of(const LeaseTerms& terms) {
  return times::heartbeat_pause(terms.lease_ms * times::kMillisecond);
}

uint64_t after(uint64_t now_ns, uint64_t pause_ns) {
  return pause_ns == Reattachment::kWhenTold ? UINT64_MAX : now_ns + pause_ns;
}

}  // namespace

Lease::Lease(LeaseTerms terms, std::unique_ptr<SwitchClient> client,
             std::shared_ptr<Housekeeper> keeper)
    : terms_(std::move(terms)), client_(std::move(client)), keeper_(std::move(keeper)) {
  keeper_->schedule(this, steady_now_ns() + pause_of(terms_));
}

Lease::~Lease() {
  keeper_->cancel(this);
  if (!client_ || lapsing_) return;  // the lease runs out by itself
  (void)client_->close_job(terms_.job, times::kHeartbeatAnswer);
}

uint64_t Lease::run_due(uint64_t now_ns) {
  if (lapsing_) return UINT64_MAX;
  const auto state = renew();
  const bool alive = state && state->state == control::State::kAlive;
  if (!alive && !warned_ && !lapsing_) {
    SLIME_WARN("job %u on the switch at %s was not kept alive: %s", terms_.job.job,
               terms_.addresses.front().to_string().c_str(),
               state ? "the switch says that it has ended" : state.error().what.c_str());
  }
  warned_ = !alive;
  return now_ns + pause_of(terms_);
}

// Over the connection that the grant came over, or over a new one if that has broken. A switch that
// was restarted answers that the job has ended.
Result<control::JobState> Lease::renew() {
  if (!client_) {
    auto client = SwitchClient::open(terms_.addresses, terms_.who, times::kHeartbeatAnswer);
    if (!client) return fail(std::move(client.error()));
    client_ = std::move(*client);
  }
  auto state = client_->heartbeat(terms_.job, times::kHeartbeatAnswer);
  if (!state) client_.reset();  // the next heartbeat connects again
  return state;
}

// Reattachment ------------------------------------------------------------------------------------

Reattachment::Reattachment(const LeaseTerms& terms, control::JoinTree wanted, uint64_t pause_ns,
                           uint64_t now_ns)
    : terms_(terms),
      wanted_(std::move(wanted)),
      of_tree_(wanted_.branches > 1),
      pause_ns_(pause_ns),
      due_ns_(after(now_ns, pause_ns)) {}

Reattachment::~Reattachment() {
  if (client_ && grant_) (void)client_->close_job(grant_->job, times::kReattachAnswer);
}

void Reattachment::poll(uint64_t now_ns) {
  if (stage_ == Stage::kGranted || stage_ == Stage::kLeafReady || now_ns < due_ns_) return;
  due_ns_ = now_ns + kStepNs;
  const Status status = step(now_ns);
  if (status != Status::kOk && status != Status::kAgain) retry_or_pause(now_ns);
}

// Connects; closes the job that was lost, because the switch may still have it; asks for the new
// one.
Status Reattachment::step(uint64_t now_ns) {
  if (stage_ == Stage::kPausing) {
    auto client = SwitchClient::start(terms_.addresses, terms_.who, times::kReattachAnswer);
    if (!client) {
      error_ = std::move(client.error());
      return error_.status;
    }
    client_ = std::move(*client);
    return ask(control::CloseJob{terms_.job}, Stage::kClosing);
  }
  const Status status = client_->progress(&error_);
  if (status != Status::kOk) return status;
  if (stage_ == Stage::kAsking) return take_answer(now_ns);
  // Any answer will do, also a refusal: the switch is there, and does not have the job any more.
  if (!of_tree_ || told_to_ask_) return ask_for_job();
  stage_ = Stage::kLeafReady;
  return Status::kOk;
}

Status Reattachment::ask(const control::Message& request, Stage stage) {
  stage_ = stage;
  return client_->post(request, times::kReattachAnswer, &error_);
}

Status Reattachment::ask_for_job() {
  return of_tree_ ? ask(wanted_, Stage::kAsking) : ask(wanted_.part, Stage::kAsking);
}

// A connection to a leaf that is ready is used; otherwise a new one is made at once.
void Reattachment::ask_now(uint64_t tree, uint64_t now_ns) {
  wanted_.tree = tree;
  told_to_ask_ = true;
  until_ns_ = now_ns + times::kTreeSetup;
  if (stage_ == Stage::kLeafReady && ask_for_job() == Status::kOk) {
    due_ns_ = now_ns;
  } else {
    disconnect(now_ns);
  }
}

// A refusal ends this try. "Wait" means that other leaves have not been asked yet: asking again
// changes nothing at the switch, so the question is repeated until it is granted.
Status Reattachment::take_answer(uint64_t now_ns) {
  if (const auto* const refused = std::get_if<control::Refused>(&client_->answer())) {
    warn_once(client_->error_of(*refused,
                                of_tree_ ? control::Type::kJoinTree : control::Type::kCreateJob));
    told_to_ask_ = false;
    return Status::kRemote;
  }
  if (std::holds_alternative<control::TreeWait>(client_->answer())) {
    due_ns_ = now_ns + kAskAgainNs;
    if (now_ns < until_ns_) return ask_for_job();
    error_ = make_error(Status::kTimeout, 0, "the tree was not complete in time");
    return Status::kTimeout;
  }
  const auto* const grant = std::get_if<control::JobGrant>(&client_->answer());
  const control::CreateJob& wanted = wanted_.part;
  if (grant == nullptr || grant->slots != wanted.slots_wanted ||
      grant->lanes != wanted.lanes_wanted || grant->formats != wanted.formats_wanted) {
    error_ = make_error(Status::kRemote, 0, "it grants another job than the one it was asked for");
    return Status::kRemote;
  }
  grant_ = *grant;
  granted_ns_ = now_ns;
  stage_ = Stage::kGranted;
  return Status::kOk;
}

bool Reattachment::granted(uint64_t now_ns) const {
  return grant_ && (!of_tree_ || now_ns - granted_ns_ >= times::kAllLeavesAnswer);
}

void Reattachment::give_back(const Error& why, uint64_t now_ns) {
  if (!grant_) return;
  warn_once(why);
  pause(now_ns);
}

void Reattachment::warn_once(const Error& why) {
  if (std::exchange(warned_, true)) return;
  SLIME_INFO("CollNet: the switch at %s is there again, but: %s",
             terms_.addresses.front().to_string().c_str(), why.what.c_str());
}

// A leaf that is just being started refuses connections for a moment, and the others wait for it.
void Reattachment::retry_or_pause(uint64_t now_ns) {
  if (told_to_ask_ && now_ns < until_ns_) return disconnect(now_ns + kAgainNs);
  if (told_to_ask_) warn_once(error_);
  pause(now_ns);
}

void Reattachment::pause(uint64_t now_ns) {
  told_to_ask_ = false;
  if (pause_ns_ != kWhenTold) pause_ns_ = std::min(2 * pause_ns_, times::kLongestReattachPause);
  disconnect(after(now_ns, pause_ns_));
}

// A grant that was not taken is closed. The request may be lost, so the next try closes it again
// (terms_.job) before it asks.
void Reattachment::disconnect(uint64_t due_ns) {
  if (grant_) {
    terms_.job = grant_->job;
    if (ask(control::CloseJob{grant_->job}, Stage::kClosing) == Status::kOk) {
      (void)client_->progress(&error_);
    }
  }
  grant_.reset();
  client_.reset();
  stage_ = Stage::kPausing;
  due_ns_ = due_ns;
}

}  // namespace slime
