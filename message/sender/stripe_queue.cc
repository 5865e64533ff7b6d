#include "message/sender/stripe_queue.h"

#include <bit>

namespace slime {
namespace {

// Whether the receiver had this stripe when it fenced the rail. A CTS that is younger than the
// record was announced after the fence, so its stripes had not arrived. If the entry of an older
// CTS is in use for another one, or not in use, the receive was complete.
bool had_arrived(const FenceRecord& record, const SendRequest& request, uint32_t stripe) {
  if (static_cast<int32_t>(request.cts_sequence - record.next_cts) >= 0) return false;
  const FenceRecord::Entry& entry = record.entries[request.target.entry];
  if (!entry.active || entry.sequence != request.cts_sequence) return true;
  return entry.arrived[request.target.sub] >> stripe & 1;
}

}  // namespace

void StripeQueue::start(SendRequest& request) {
  waiting_bytes_ += request.bytes;
  if (any() || !submit(request)) waiting_[tail_++ % kMostRequests] = &request;
}

void StripeQueue::submit_waiting() {
  while (any()) {
    if (!submit(*waiting_[head_ % kMostRequests])) return;
    ++head_;
  }
}

// Submits unsent stripes of the request. False: no rail has room for the next one.
bool StripeQueue::submit(SendRequest& request) {
  RailScheduler& scheduler = link_.scheduler();
  while (request.unsent != 0) {
    const auto stripe = static_cast<uint32_t>(std::countr_zero(request.unsent));
    const uint64_t bytes = request.plan.length(stripe, request.bytes);
    const size_t rail =
        scheduler.choose_rail_for_stripe(bytes, waiting_bytes_, request.plan.stripes == 1);
    if (rail == kNoRail) return false;
    waiting_bytes_ -= bytes;
    request.unsent &= request.unsent - 1;
    submit_stripe(request, stripe, rail);
  }
  return true;
}

// A stripe without bytes needs no keys and no addresses: only its immediate counts.
void StripeQueue::submit_stripe(SendRequest& request, uint32_t stripe, size_t rail) {
  LinkRails& rails = link_.rails();
  request.rail[stripe] = static_cast<uint8_t>(rail);
  if (request.lost >> stripe & 1) {
    request.lost &= ~(uint64_t{1} << stripe);
    rails[rail].channel->counters.retries.add();
  }
  DataImmediate immediate = request.target;
  immediate.stripe = stripe;
  Work work;
  work.length = static_cast<uint32_t>(request.plan.length(stripe, request.bytes));
  work.immediate = immediate.pack();
  work.cookie =
      WorkId{WorkId::Kind::kStripe, static_cast<uint8_t>(stripe), request.index, request.generation}
          .pack();
  if (work.length > 0) {
    work.local = request.data + request.plan.offset(stripe);
    work.local_key = rails[rail].local_key(request.region);
    work.remote_address = request.remote_address + request.plan.offset(stripe);
    work.remote_offset = request.remote_offset + request.plan.offset(stripe);
    work.remote_key = cts_.remote_key(request.target.entry, request.target.sub, rail);
  }
  rails.submit(rail, work);
}

void StripeQueue::requeue_lost(SendRequest& request, size_t dead_rail, const FenceRecord& record) {
  const bool queued = request.unsent != 0;
  for (uint64_t left = request.open & ~request.unsent; left != 0; left &= left - 1) {
    const auto stripe = static_cast<uint32_t>(std::countr_zero(left));
    if (request.rail[stripe] != dead_rail) continue;
    const uint64_t bit = uint64_t{1} << stripe;
    if (had_arrived(record, request, stripe)) {
      request.open &= ~bit;
    } else {
      request.lost |= bit;
      request.unsent |= bit;
      waiting_bytes_ += request.plan.length(stripe, request.bytes);
    }
  }
  if (!queued && request.unsent != 0) waiting_[--head_ % kMostRequests] = &request;
}

}  // namespace slime
