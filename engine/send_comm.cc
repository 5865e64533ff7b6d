#include "engine/send_comm.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace slime {

SendCommImpl::SendCommImpl(Fabric& fabric, Device& device, LinkParts parts, RegisteredBuffer inbox,
                           RegisteredBuffer outbox)
    : inbox_(std::move(inbox)),
      outbox_{std::move(outbox), parts.peer_inbox},
      eager_max_(parts.eager_max),
      settles_(fabric.attends_idle_comms() && parts.channels.size() > 1),
      link_(fabric, device, std::move(parts.peer), parts.active, *this, parts.traffic_class) {
  requests_.reserve(kPool);
  free_.reserve(kPool);
  for (size_t i = 0; i < kPool; ++i) {
    requests_.emplace_back(this, static_cast<uint16_t>(i));
    free_.push_back(static_cast<uint16_t>(kPool - 1 - i));
  }
  for (LinkChannel& channel : parts.channels) link_.add_rail(std::move(channel));
  link_.warm_up();
  if (settles_) attend_when_idle(link_.rail_count(), device.properties().near);
}

SendCommImpl::~SendCommImpl() {
  if (settles_) settle();
  leave();
}

Status SendCommImpl::isend(const void* data, size_t bytes, int tag, const MemoryRegion* region,
                           Request** request) {
  const Call call(*this);
  *request = nullptr;
  if (link_.status() != Status::kOk) return link_.status();
  if (free_.empty()) return not_now();
  // Even where a CTS has come: while small messages go eagerly, the receiver need not send any.
  if (eager_fits(bytes, region)) {
    start_eager(data, bytes, tag, request);
    return Status::kOk;
  }
  Match found = match(tag);
  if (found.group == nullptr) {
    // Nothing of ours may be outstanding, so nobody but this call would look for a CTS.
    if (const Status status = move(); status != Status::kOk) return status;
    found = match(tag);
    if (found.group == nullptr) {
      ask_for_cts();
      waited();
      return wait_for_receiver(bytes);
    }
  }
  waiting_since_ns_ = 0;
  return start(found, data, bytes, region, request);
}

Status SendCommImpl::start(const Match& found, const void* data, size_t bytes,
                           const MemoryRegion* region, Request** request) {
  const CtsReceive& entry = found.group->receives[found.sub];
  if (bytes > entry.capacity) return too_long(bytes, entry);
  const StripePlan plan =
      plan_stripes(bytes, static_cast<uint32_t>(link_.up_count()), link_.stripe_limits());
  if (plan.stripes == 0) {
    return link_.fail(make_error(
        Status::kInvalid, 0, "a send of %zu bytes needs more than %u works of %llu bytes", bytes,
        kMaxStripes, static_cast<unsigned long long>(link_.stripe_limits().most)));
  }
  SendRequest* taken = take_request(data, bytes, region);
  taken->plan = plan;
  taken->remote_address = entry.address;
  taken->remote_offset = entry.offset;
  taken->cts_sequence = found.group->header.sequence;
  taken->target = {found.group->header.entry, found.sub, 0, plan.stripes,
                   found.group->header.generation};
  taken->open = ~uint64_t{0} >> (kMaxStripes - plan.stripes);
  taken->unsent = taken->open;
  waiting_bytes_ += bytes;
  const bool first = waiting_head_ == waiting_tail_;
  if (!first || !submit_stripes(*taken)) waiting_[waiting_tail_++ % kPool] = taken->index;
  ++sent_.of(entry.tag);
  eager_streak_ = 0;
  const uint32_t seen = taken->cts_sequence + 1;
  if (static_cast<int32_t>(seen - told_) > 0) told_ = seen;
  achieved();
  *request = taken;
  return Status::kOk;
}

// False: no rail has room for the next one.
bool SendCommImpl::submit_stripes(SendRequest& request) {
  while (request.unsent != 0) {
    const auto stripe = static_cast<uint32_t>(std::countr_zero(request.unsent));
    const uint64_t bytes = request.plan.length(stripe, request.bytes);
    const size_t rail = link_.pick_for_stripe(bytes, waiting_bytes_, request.plan.stripes == 1);
    if (rail == kNoRail) return false;
    waiting_bytes_ -= bytes;
    request.unsent &= request.unsent - 1;
    submit_stripe(request, stripe, rail);
  }
  return true;
}

// Stripes of older messages first, and of a message in their order: the receiver's user waits for
// the oldest.
void SendCommImpl::submit_waiting() {
  while (waiting_head_ != waiting_tail_) {
    if (!submit_stripes(requests_[waiting_[waiting_head_ % kPool]])) return;
    ++waiting_head_;
  }
}

void SendCommImpl::submit_stripe(SendRequest& request, uint32_t stripe, size_t rail) {
  request.rail[stripe] = static_cast<uint8_t>(rail);
  if (request.lost >> stripe & 1) {
    request.lost &= ~(uint64_t{1} << stripe);
    link_.count_retry(rail);
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
    work.local_key = link_.local_key(rail, request.region);
    work.remote_address = request.remote_address + request.plan.offset(stripe);
    work.remote_offset = request.remote_offset + request.plan.offset(stripe);
    work.remote_key = remote_key(request.target.entry, request.target.sub, rail);
  }
  link_.submit(rail, work);
}

SendRequest* SendCommImpl::take_request(const void* data, size_t bytes,
                                        const MemoryRegion* region) {
  SendRequest* request = &requests_[free_.back()];
  free_.pop_back();
  request->active = true;
  ++request->generation;
  request->data = static_cast<const std::byte*>(data);
  request->region = region;
  request->bytes = bytes;
  request->started_ns = link_.now_ns();
  request->open = request->unsent = request->lost = 0;
  request->eager = false;
  return request;
}

Status SendCommImpl::not_now() {
  const Status status = move();
  waited();
  return status;
}

Status SendCommImpl::test(Request* request, bool* done, size_t* sizes) {
  const Call call(*this);
  auto& mine = static_cast<SendRequest&>(*request);
  if (!mine.active) {
    return link_.fail(make_error(Status::kInvalid, 0, "test of a send request that is done"));
  }
  // Of many that one poll completed, only the first test has anything to move.
  const bool settled = mine.open == 0 && !link_.busy();
  const Status status = settled ? Status::kOk : move();
  *done = mine.open == 0;
  if (*done) {  // also after a failure: what is done stays done
    achieved();
    if (sizes) sizes[0] = mine.bytes;
    mine.active = false;
    free_.push_back(mine.index);
    return Status::kOk;
  }
  if (status != Status::kOk) return status;
  waited();
  return link_.check_deadline(mine.started_ns, "the completion of a send", mine.bytes);
}

Status SendCommImpl::progress() {
  const Call call(*this);
  return move();
}

Status SendCommImpl::move() {
  const Status status = link_.progress();
  if (waiting_head_ != waiting_tail_ && status == Status::kOk) {
    submit_waiting();
    link_.post_more();
  }
  return status;
}

Status SendCommImpl::on_arrived(size_t, uint32_t immediate, uint64_t bytes) {
  switch (kind_of(immediate)) {
    case ImmediateKind::kCts:
      return on_cts(immediate, bytes);
    case ImmediateKind::kControl:
      if (control_op(immediate) != ControlOp::kCredit) break;
      return_credits(widen(eager_consumed_, control_value(immediate), kControlValueMask));
      return Status::kOk;
    case ImmediateKind::kData:
    case ImmediateKind::kEager:
      break;
  }
  return link_.fail_protocol("what only a sending end sends");
}

bool SendCommImpl::on_sent(const WorkId& cookie, uint64_t* bytes) {
  if (cookie.kind == WorkId::Kind::kEager) {
    EagerBuffer& entry = eager_[cookie.index % kEagerBuffers];
    if (!entry.open || entry.index != cookie.generation) return false;
    finish_eager(entry);
    *bytes = entry.bytes;
    return true;
  }
  SendRequest& request = requests_[cookie.index % kPool];
  const uint64_t bit = uint64_t{1} << (cookie.part % kMaxStripes);
  if (!request.active || request.eager || request.generation != cookie.generation ||
      !(request.open & ~request.unsent & bit)) {
    return false;
  }
  request.open &= ~bit;
  *bytes = request.plan.length(cookie.part, request.bytes);
  return true;
}

// A receive that the record no longer shows was complete; one that is younger than the record was
// announced when the rail was fenced already.
bool SendCommImpl::had_arrived(const FenceRecord& record, const SendRequest& request, int stripe) {
  if (static_cast<int32_t>(request.cts_sequence - record.next_cts) >= 0) return false;
  const FenceRecord::Entry& entry = record.entries[request.target.entry];
  if (!entry.active || entry.sequence != request.cts_sequence) return true;
  return entry.arrived[request.target.sub] >> stripe & 1;
}

// The receiver's record says which stripes of the dead rail it has; the rest goes elsewhere.
Status SendCommImpl::on_fenced(const RailLife& life) {
  const size_t rail = life.rail;
  FenceRecord record;
  std::memcpy(&record, inbox_.data() + fence_offset(link_.rail_count(), rail), sizeof record);
  if (record.rail != rail || record.epoch != life.epoch) {
    return link_.fail_protocol("no record of what arrived on a dead rail");
  }
  for (SendRequest& request : requests_) {
    if (!request.active || request.eager) continue;
    const bool queued = request.unsent != 0;
    for (uint64_t left = request.open & ~request.unsent; left; left &= left - 1) {
      const int stripe = std::countr_zero(left);
      if (request.rail[stripe] != rail) continue;
      const uint64_t bit = uint64_t{1} << stripe;
      if (had_arrived(record, request, stripe)) {
        request.open &= ~bit;
      } else {
        request.lost |= bit;
        request.unsent |= bit;
        waiting_bytes_ += request.plan.length(static_cast<uint32_t>(stripe), request.bytes);
      }
    }
    // Before those that have waited: it is older than most of them.
    if (!queued && request.unsent != 0) waiting_[--waiting_head_ % kPool] = request.index;
  }
  repeat_eager(rail);
  tell_seen();
  submit_waiting();
  return Status::kOk;
}

JoinRecordPlaces SendCommImpl::join_records(size_t rail) const {
  return {inbox_.data() + cts_join_offset(link_.rail_count(), rail), &outbox_,
          eager_join_offset(eager_max_, rail)};
}

void SendCommImpl::fill_probe(size_t rail, Work* work) const {
  const size_t offset = eager_probe_offset(eager_max_, link_.rail_count());
  *work = link_.write_of(outbox_, offset, kProbeBytes, rail);
}

Status SendCommImpl::too_long(size_t bytes, const CtsReceive& entry) {
  return link_.fail(make_error(
      Status::kInvalid, 0,
      "a send of %zu bytes (tag %d) meets a receive of %llu bytes; the ranks disagree on a size",
      bytes, entry.tag, static_cast<unsigned long long>(entry.capacity)));
}

Status SendCommImpl::wait_for_receiver(size_t bytes) {
  if (waiting_since_ns_ == 0) waiting_since_ns_ = link_.now_ns();
  return link_.check_deadline(waiting_since_ns_, "the receiver to be ready for a send", bytes);
}

}  // namespace slime
