#include "message/sender/sender.h"

#include <cstring>

namespace slime {
namespace {

// The stripes that the receiver had when it fenced the rail. A CTS that is younger than the record
// was announced after the fence, so its stripes had not arrived. If the entry of an older CTS is in
// use for another one, or not in use, the receive was complete.
uint64_t arrived(const FenceRecord& record, const SendRequest& request) {
  if (static_cast<int32_t>(request.cts_sequence - record.next_cts) >= 0) return 0;
  const FenceRecord::Entry& entry = record.entries[request.target.entry];
  if (!entry.active || entry.sequence != request.cts_sequence) return ~uint64_t{0};
  return entry.arrived[request.target.sub];
}

}  // namespace

Sender::Sender(Comm& comm, Link& link, uint32_t eager_max)
    : link_(link),
      eager_(link_, eager_max),
      cts_(link_.context(), eager_, link_.memory().inbox(), link_.rails().count()),
      stripes_(link_.rails(), link_.scheduler()) {
  requests_.reserve(kMostRequests);
  free_.reserve(kMostRequests);
  for (size_t i = 0; i < kMostRequests; ++i) {
    requests_.emplace_back(&comm, static_cast<uint16_t>(i));
    free_.push_back(static_cast<uint16_t>(kMostRequests - 1 - i));
  }
}

// Three ways: a small message goes eagerly; another one starts if its CTS is here; otherwise the
// caller has to call again, and this asks for the CTS if the receiver may be holding it back.
Status Sender::isend(const void* data, size_t bytes, int tag, const MemoryRegion* region,
                     Request** request) {
  *request = nullptr;
  if (link_.status() != Status::kOk) return start_on_failed_link(bytes, request);
  if (free_.empty()) return move();
  // A small message goes eagerly even if its CTS has come, so that the receiver may hold CTS back.
  if (eager_.fits(bytes, region)) {
    SendRequest* const taken = take_request(bytes);
    cts_.reported(cts_.next_sequence());
    ++eager_streak_;
    eager_.send(*taken, data, tag, cts_.count_send(tag), cts_.next_sequence());
    waiting_since_ns_ = 0;
    *request = taken;
    return Status::kOk;
  }
  CtsInbox::Match found = cts_.match(tag);
  if (found.group == nullptr) {
    // If nothing of this comm is outstanding, no other call would poll for the CTS.
    if (move() != Status::kOk) return start_on_failed_link(bytes, request);
    found = cts_.match(tag);
  }
  if (found.group == nullptr) {
    ask_for_cts();
    if (waiting_since_ns_ == 0) waiting_since_ns_ = link_.rails().clock().now_ns;
    return link_.check_deadline(waiting_since_ns_, "the receiver to be ready for a send", bytes);
  }
  waiting_since_ns_ = 0;
  return start(found, data, bytes, region, request);
}

Status Sender::start(const CtsInbox::Match& found, const void* data, size_t bytes,
                     const MemoryRegion* region, Request** request) {
  const CtsReceive& receive = found.group->receives[found.sub];
  if (bytes > receive.capacity) {
    eager_.send_too_long(bytes, receive.tag, receive.ordinal, cts_.next_sequence());
    return link_.context().fail(size_error(bytes, receive.tag, receive.capacity));
  }
  const StripePlan plan = stripes_.plan(bytes);
  if (plan.stripes == 0) {
    return link_.context().fail(make_error(
        Status::kInvalid, 0, "a send of %zu bytes needs more than %u works of %llu bytes", bytes,
        kMaxStripes, static_cast<unsigned long long>(link_.scheduler().stripe_limits().most)));
  }
  SendRequest* taken = take_request(bytes);
  const CtsHeader& header = found.group->header;
  taken->cts_sequence = header.sequence;
  taken->target = {header.entry, found.sub, 0, plan.stripes, header.generation};
  stripes_.start(
      *taken,
      {static_cast<const std::byte*>(data), region, bytes, receive.address, receive.offset,
       cts_.remote_keys(header.entry, found.sub), taken->target.pack(), DataImmediate::kNextStripe},
      plan);
  (void)cts_.count_send(receive.tag);
  eager_streak_ = 0;
  cts_.reported(header.sequence + 1);
  *request = taken;
  return Status::kOk;
}

// The request never completes, so its test returns the failure of the link.
Status Sender::start_on_failed_link(size_t bytes, Request** request) {
  if (free_.empty()) return link_.status();
  SendRequest* const taken = take_request(bytes);
  taken->held = true;
  *request = taken;
  return Status::kOk;
}

SendRequest* Sender::take_request(size_t bytes) {
  SLIME_CHECK(!free_.empty());
  SendRequest* request = &requests_[free_.back()];
  SLIME_CHECK(!request->active && request->complete());
  free_.pop_back();
  request->active = true;
  request->bytes = bytes;
  request->started_ns = link_.rails().clock().now_ns;
  return request;
}

Status Sender::fail_test_of_done() {
  return link_.context().fail(
      make_error(Status::kInvalid, 0, "test of a send request that is done"));
}

Status Sender::move() {
  const Status status = link_.progress();
  if (stripes_.any() && status == Status::kOk) {
    stripes_.submit_waiting();
    link_.post_more();
  }
  return status;
}

// After some eager messages in a row the receiver may hold its CTS back, so this asks for it. If
// the receiver does not hold it back, the request is wasted, but only once for each streak. It is
// posted at once.
void Sender::ask_for_cts() {
  if (eager_streak_ < kEagerStreak || cts_.any() || link_.rails().up_count() == 0) return;
  eager_streak_ = 0;
  link_.rails().submit_control(message_op::kWanted, cts_.next_sequence());
  (void)link_.progress();  // the next call reports a failure
}

void Sender::report_seen() {
  cts_.reported(cts_.next_sequence());
  link_.rails().submit_control(message_op::kSeen, cts_.next_sequence());
}

Status Sender::on_arrived(size_t, uint32_t immediate, uint64_t bytes) {
  if (kind_of(immediate) == ImmediateKind::kCts) {
    if (const Status status = cts_.on_cts(immediate, bytes); status != Status::kOk) return status;
    if (cts_.report_due()) report_seen();
    return Status::kOk;
  }
  if (kind_of(immediate) == ImmediateKind::kControl &&
      control_op(immediate) == message_op::kCredit) {
    eager_.return_credits(widen(eager_.consumed(), control_value(immediate), kControlValueMask));
    return Status::kOk;
  }
  if (kind_of(immediate) == ImmediateKind::kControl &&
      control_op(immediate) == message_op::kTooLong) {
    return eager_.refused(Refusal::unpack(control_value(immediate)));
  }
  return link_.context().fail_protocol("what only a sending end sends");
}

// The receiver's record says which stripes have arrived. The others that were on the dead rail wait
// again for one. Eager messages of that rail, and the number of accepted CTS, are sent again.
Status Sender::on_both_fenced(const RailLife& life) {
  FenceRecord record;
  const size_t offset = fence_offset(link_.rails().count(), life.rail);
  std::memcpy(&record, link_.memory().inbox() + offset, sizeof record);
  if (record.rail != life.rail || record.epoch != life.epoch) {
    return link_.context().fail_protocol("no record of what arrived on a dead rail");
  }
  for (SendRequest& request : requests_) {
    if (!request.complete()) request.note_arrived(arrived(record, request));
  }
  link_.rails().hand_back_works(life.rail);
  eager_.resubmit_lost(life.rail);
  report_seen();
  stripes_.submit_waiting();
  return Status::kOk;
}

}  // namespace slime
