#include "collnet/comm/lease.h"

#include <utility>

#include "base/log.h"

namespace slime {
namespace {

constexpr uint64_t kTimeoutNs = 1'000'000'000;  // of one question to the switch
constexpr uint32_t kPerLease = 3;               // heartbeats: two may be lost

uint64_t pause_of(const LeaseTerms& terms) {
  return uint64_t{terms.lease_ms} * 1'000'000 / kPerLease;
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
  (void)client_->close_job(terms_.job, kTimeoutNs);
}

uint64_t Lease::run_due(uint64_t now_ns) {
  if (lapsing_) return UINT64_MAX;
  const auto state = renew();
  const bool alive = state && state->state == control::State::kAlive;
  if (!alive && !warned_ && !lapsing_) {
    SLIME_WARN("job %u on the switch at %s was not kept alive: %s", terms_.job.job,
               terms_.address.to_string().c_str(),
               state ? "the switch says that it has ended" : state.error().what.c_str());
  }
  warned_ = !alive;
  return now_ns + pause_of(terms_);
}

// Over the connection that the grant came by, or over a new one if that has broken: the switch may
// have been restarted, which is what the answer then says.
Result<control::JobState> Lease::renew() {
  if (!client_) {
    auto client = SwitchClient::open(terms_.address, terms_.who, kTimeoutNs);
    if (!client) return fail(std::move(client.error()));
    client_ = std::move(*client);
  }
  auto state = client_->heartbeat(terms_.job, kTimeoutNs);
  if (!state) client_.reset();  // the next heartbeat connects again
  return state;
}

}  // namespace slime
