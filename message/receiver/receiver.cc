#include "message/receiver/receiver.h"

#include <algorithm>
#include <cstring>

namespace slime {

Receiver::Receiver(Comm& comm, Link& link, uint32_t eager_max)
    : link_(link),
      eager_max_(eager_max),
      requests_(&comm, link_.context()),
      eager_(link_.memory().inbox(), eager_max_),
      cts_(link_, eager_, requests_) {
  for (const LinkRail& rail : link_.rails().all()) {
    arrives_unpolled_ &= rail.rail->caps().arrives_unpolled;
  }
}

Result<void> Receiver::open_flushes(Comm& comm) {
  const LinkContext& context = link_.context();
  return flushes_.open(comm, context.device, context.settings().peer_timeout);
}

// A new receive first takes messages that came before it; only the rest is announced by CTS.
Status Receiver::irecv(std::span<const Receive> receives, bool may_complete_early,
                       Request** request) {
  *request = nullptr;
  if (link_.status() != Status::kOk && !all_arrived(receives)) return link_.status();
  LinkRails& rails = link_.rails();
  const bool has_room = rails.up_count() == 0 || rails.room(rails.quickest_rail(0)) > 0;
  if (!requests_.any_free() || !has_room) return move();
  ReceiveRequest* taken = requests_.take(receives, rails.clock().now_ns);
  // With eager sending a receive must not complete early: this end copies eager messages itself.
  taken->early = may_complete_early && arrives_unpolled_ && eager_max_ == 0 && taken->count == 1;
  if (const Status status = take_early_messages(*taken); status != Status::kOk) return status;
  if (taken->incomplete > 0) cts_.announce(*taken);
  *request = taken;
  return Status::kOk;
}

// Whether these receives would be complete at once if they were posted now.
bool Receiver::all_arrived(std::span<const Receive> receives) const {
  for (size_t i = 0; i < receives.size(); ++i) {
    const int tag = receives[i].tag;
    const auto same = std::ranges::count(receives.first(i), tag, &Receive::tag);
    const uint32_t ordinal = requests_.next_ordinal(tag) + static_cast<uint32_t>(same);
    if (!eager_.find(tag, ordinal)) return false;
  }
  return true;
}

Status Receiver::fail_test_of_done() {
  return link_.context().fail(
      make_error(Status::kInvalid, 0, "test of a receive request that is done"));
}

// The reads stay within this host, so they complete even after the link has failed.
Status Receiver::flush(const void* data, const MemoryRegion* region, Request** request) {
  Status status = Status::kOk;
  FlushRequest* const begun = flushes_.begin(data, region, link_.rails().clock().now_ns, &status);
  if (status != Status::kOk) return link_.context().fail(flushes_.failure());
  *request = begun;
  return Status::kOk;
}

Status Receiver::test_flush(FlushRequest& request, bool* done) {
  if (!request.active) {
    return link_.context().fail(
        make_error(Status::kInvalid, 0, "test of a flush request that is done"));
  }
  const Status status = flushes_.test(request, link_.rails().clock().now_ns, done);
  if (status != Status::kOk) return link_.context().fail(flushes_.failure());
  if (!*done) (void)move();
  return Status::kOk;
}

Status Receiver::move() {
  const Status status = link_.progress();
  cts_.on_moved();
  return status;
}

Status Receiver::on_arrived(size_t rail, uint32_t immediate, uint64_t bytes) {
  switch (kind_of(immediate)) {
    case ImmediateKind::kData:
      return on_stripe(rail, DataImmediate::unpack(immediate), bytes);
    case ImmediateKind::kEager:
      return on_eager(immediate, bytes);
    case ImmediateKind::kControl: {
      const uint32_t value = control_value(immediate);
      if (control_op(immediate) == message_op::kWanted) {
        return cts_.on_wanted(widen(cts_.next_sequence(), value, kControlValueMask));
      }
      if (control_op(immediate) != message_op::kSeen) break;
      requests_.on_seen(widen(requests_.cts_seen(), value, kControlValueMask));
      return Status::kOk;
    }
    case ImmediateKind::kCts:
      break;
  }
  return link_.context().fail_protocol("what only a receiving end sends");
}

// Counts a stripe. Its immediate comes from the peer, so every field is checked before it is used.
Status Receiver::on_stripe(size_t rail, const DataImmediate& immediate, uint64_t bytes) {
  ReceiveRequest& request = requests_[immediate.entry];
  const bool current = request.announced() && request.generation == immediate.generation;
  if (!current || immediate.sub >= request.count) {
    // A repeated stripe: the NIC, or a sender that could not know that it had arrived, sent it
    // again.
    return Status::kOk;
  }
  ReceivePart& part = request.parts[immediate.sub];
  const uint64_t bit = uint64_t{1} << immediate.stripe;
  if (part.complete || (part.arrived & bit)) return Status::kOk;
  if (part.stripes == 0) part.stripes = immediate.stripes;
  LinkContext& context = link_.context();
  if (part.stripes != immediate.stripes || immediate.stripe >= part.stripes) {
    return context.fail_protocol("stripes that do not fit together");
  }
  cts_.on_stripe();
  part.arrived |= bit;
  part.bytes += bytes;
  if (part.in_device) flushes_.delivered(link_.rails()[rail].device_rail_index);
  requests_.on_seen(request.sequence + 1);
  if (part.bytes > part.capacity) return context.fail_protocol("more bytes than the receive takes");
  if (part.arrived == ~uint64_t{0} >> (kMaxStripes - part.stripes)) request.complete(part);
  if (request.returned) requests_.retire_if_idle(request);
  return Status::kOk;
}

// Delivers an eager message if its receive is posted; otherwise the message waits in its buffer.
Status Receiver::on_eager(uint32_t immediate, uint64_t bytes) {
  uint32_t buffer = 0;
  const EagerInbox::Arrival arrival = eager_.arrive(immediate, bytes, &buffer);
  if (arrival == EagerInbox::Arrival::kRepeated) return Status::kOk;
  if (arrival == EagerInbox::Arrival::kMalformed) {
    return link_.context().fail_protocol("a malformed eager message");
  }
  const EagerHeader& header = eager_.header(buffer);
  requests_.on_seen(header.cts_seen);
  ReceiveRequest* request = nullptr;
  ReceivePart* part = nullptr;
  // Most messages come in the order of the receives.
  const bool posted =
      requests_.find(header.tag, header.ordinal, cts_.oldest_held(), &request, &part);
  return posted ? deliver(buffer, *request, *part) : Status::kOk;
}

Status Receiver::take_early_messages(ReceiveRequest& request) {
  for (uint32_t i = 0; eager_.any_waiting() && i < request.count; ++i) {
    ReceivePart& part = request.parts[i];
    const auto buffer = eager_.find(part.tag, part.ordinal);
    if (!buffer) continue;
    if (const Status status = deliver(*buffer, request, part); status != Status::kOk) return status;
  }
  return Status::kOk;
}

// Copies a message to its receive. After that the buffer's credit may return, with the next CTS or,
// when half of the credits are owed, by a control work.
Status Receiver::deliver(uint32_t buffer, ReceiveRequest& request, ReceivePart& part) {
  const EagerHeader& header = eager_.header(buffer);
  if (header.bytes() > part.capacity) return refuse(buffer, part.capacity);
  if (!eager_.has_payload(buffer)) {
    return link_.context().fail_protocol("a malformed eager message");
  }
  if (header.length > 0) std::memcpy(part.data, eager_.payload(buffer), header.length);
  part.bytes = header.length;
  request.complete(part);
  if (request.returned) requests_.retire_if_idle(request);
  cts_.on_eager(part.capacity);
  if (request.incomplete == 0) cts_.withdraw(request);
  eager_.take(buffer);
  if (eager_.report_due() && link_.status() == Status::kOk) {
    eager_.reported();
    link_.rails().submit_control(message_op::kCredit, eager_.consumed());
  }
  return Status::kOk;
}

// The message is too long for its receive. A sender that left the payload out knows it already.
Status Receiver::refuse(uint32_t buffer, uint64_t capacity) {
  const EagerHeader& header = eager_.header(buffer);
  LinkRails& rails = link_.rails();
  const bool can_tell = link_.status() == Status::kOk && rails.up_count() > 0;
  if (can_tell && eager_.has_payload(buffer)) {
    const size_t rail = rails.quickest_rail(0);
    const Refusal refusal{buffer, static_cast<uint32_t>(capacity)};
    rails.submit_control(rail, {message_op::kTooLong, refusal.pack()});
    rails.flush(rail, false);
  }
  return link_.context().fail(size_error(header.bytes(), header.tag, capacity));
}

// Writes the record of what has arrived: for each CTS entry its sequence and its stripes.
OutboxPiece Receiver::fence_record(const RailLife& life) {
  const size_t offset = fence_offset(link_.rails().count(), life.rail);
  FenceRecord record;
  record.rail = life.rail;
  record.epoch = life.epoch;
  record.next_cts = cts_.next_sequence();
  for (const ReceiveRequest& request : requests_.all()) {
    FenceRecord::Entry& entry = record.entries[request.index];
    entry.active = request.announced();
    entry.sequence = request.sequence;
    for (uint32_t i = 0; i < request.count; ++i) {
      entry.arrived[i] = request.parts[i].complete ? ~uint64_t{0} : request.parts[i].arrived;
    }
  }
  std::memcpy(link_.memory().outbox() + offset, &record, sizeof record);
  // Part of a stripe that has not arrived may be on its way to the device, and must not reach it
  // after the second copy of the stripe. So the next flush reads on the dead rail once more.
  flushes_.delivered(link_.rails()[life.rail].device_rail_index);
  return {offset, sizeof record};
}

// Sends again what the dead rail may have lost: CTS that the sender may not have read, and credits.
Status Receiver::on_both_fenced(const RailLife& life) {
  link_.rails().hand_back_works(life.rail);
  for (ReceiveRequest& request : requests_.all()) {
    if (!request.announced() || request.cts_rail != life.rail) continue;
    if (request.cts_open || !requests_.seen(request)) cts_.send_again(request);
  }
  eager_.reported();
  link_.rails().submit_control(message_op::kCredit, eager_.consumed());
  return Status::kOk;
}

}  // namespace slime
