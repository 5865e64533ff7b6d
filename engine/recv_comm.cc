#include "engine/recv_comm.h"

#include <algorithm>
#include <bit>

namespace slime {

RecvCommImpl::RecvCommImpl(Fabric& fabric, Device& device, LinkParts parts, RegisteredBuffer inbox,
                           RegisteredBuffer outbox)
    : inbox_(std::move(inbox)),
      outbox_{std::move(outbox), parts.peer_inbox},
      eager_max_(parts.eager_max),
      link_(fabric, device, std::move(parts.peer), parts.active, *this, parts.traffic_class) {
  requests_.reserve(kCtsEntries);
  free_.reserve(kCtsEntries);
  for (uint32_t i = 0; i < kCtsEntries; ++i) {
    requests_.emplace_back(this, static_cast<uint16_t>(i));
    free_.push_back(static_cast<uint16_t>(kCtsEntries - 1 - i));
  }
  for (LinkChannel& channel : parts.channels) {
    arrives_unpolled_ &= device.rails()[channel.device_rail]->caps().arrives_unpolled;
    link_.add_rail(std::move(channel));
  }
  link_.warm_up();
  if (!parts.host_memory) {
    const auto opened = flushes_.open(*this, device, fabric.settings().peer_timeout);
    if (!opened) (void)link_.fail(opened.error());
  }
  if (fabric.attends_idle_comms() && link_.rail_count() > 1) {
    attend_when_idle(link_.rail_count(), device.properties().near);
  }
}

Status RecvCommImpl::irecv(std::span<const Receive> receives, bool may_complete_early,
                           Request** request) {
  const Call call(*this);
  *request = nullptr;
  if (link_.status() != Status::kOk && !all_arrived(receives)) return link_.status();
  if (outstanding_ == kMaxRequests || free_.empty() || !has_room()) {
    const Status status = move();
    waited();
    return status;
  }
  ReceiveRequest* taken = take_request(receives);
  // An eager message needs a copy by us, so with eager sending nothing completes behind our back.
  taken->early = may_complete_early && arrives_unpolled_ && eager_max_ == 0 && taken->count == 1;
  if (const Status status = take_early_messages(*taken); status != Status::kOk) return status;
  if (taken->incomplete > 0) announce(*taken);
  achieved();
  *request = taken;
  return Status::kOk;
}

ReceiveRequest* RecvCommImpl::take_request(std::span<const Receive> receives) {
  ReceiveRequest* request = &requests_[free_.back()];
  free_.pop_back();
  ++outstanding_;
  request->active = true;
  request->cts_bytes = 0;
  request->returned = request->cts_open = request->held = false;
  request->generation = (request->generation + 1) & kGenerationMask;
  request->count = request->incomplete = static_cast<uint32_t>(receives.size());
  request->started_ns = link_.now_ns();
  for (size_t i = 0; i < receives.size(); ++i) {
    const Receive& receive = receives[i];
    ReceivePart& part = request->parts[i];
    part = ReceivePart();
    part.data = static_cast<std::byte*>(receive.data);
    part.capacity = receive.capacity;
    part.region = receive.region;
    part.in_device = receive.region != nullptr && receive.region->kind != MemoryKind::kHost;
    part.tag = receive.tag;
    part.ordinal = posted_.of(receive.tag)++;
  }
  return request;
}

void RecvCommImpl::write_cts(ReceiveRequest& request) {
  request.sequence = next_cts_++;
  const size_t channels = link_.rail_count();
  std::byte* record = outbox_.at(request.index * cts_entry_bytes(channels));
  const CtsHeader header{request.sequence, request.index, static_cast<uint16_t>(request.generation),
                         request.count, consumed_};
  std::memcpy(record, &header, sizeof header);
  record += sizeof header;
  reported_ = consumed_;
  for (uint32_t i = 0; i < request.count; ++i) {
    const ReceivePart& part = request.parts[i];
    const uint64_t offset = part.region ? part.region->offset_of(part.data) : 0;
    const CtsReceive entry{reinterpret_cast<uint64_t>(part.data), offset, part.capacity, part.tag,
                           part.ordinal};
    std::memcpy(record, &entry, sizeof entry);
    record += sizeof entry;
    for (size_t rail = 0; rail < channels; ++rail, record += sizeof(uint64_t)) {
      const uint64_t key = part.region ? link_.remote_key(rail, part.region) : 0;
      std::memcpy(record, &key, sizeof key);
    }
  }
  request.cts_bytes =
      static_cast<uint32_t>(sizeof header + request.count * cts_receive_bytes(channels));
}

// What the sender has seen is known without a confirmation. A CTS that is sent again needs one: the
// sender may have seen the first copy, and the record must not change before the second has
// arrived.
void RecvCommImpl::submit_cts(ReceiveRequest& request, bool again) {
  const size_t rail = link_.pick(request.cts_bytes);
  const size_t offset = request.index * cts_entry_bytes(link_.rail_count());
  request.cts_rail = static_cast<uint8_t>(rail);
  request.cts_open = true;
  Work work = link_.write_of(outbox_, offset, request.cts_bytes, rail);
  work.immediate = cts_immediate(request.index, request.sequence);
  work.unconfirmed = !again;
  work.cookie = WorkId{WorkId::Kind::kCts, again, request.index, request.generation}.pack();
  link_.submit(rail, work);
}

Status RecvCommImpl::test(Request* request, bool* done, size_t* sizes) {
  const Call call(*this);
  if (FlushRequest* const flush = flushes_.find(request)) return test_flush(*flush, done);
  auto& mine = static_cast<ReceiveRequest&>(*request);
  if (!mine.active || mine.returned) {
    return link_.fail(make_error(Status::kInvalid, 0, "test of a receive request that is done"));
  }
  const bool settled = mine.incomplete == 0 && !link_.busy();  // as in SendCommImpl::test
  const Status status = settled ? Status::kOk : move();
  *done = mine.incomplete == 0 || (mine.early && !mine.cts_open && status == Status::kOk);
  if (*done) {  // also after a failure: what is done stays done
    for (uint32_t i = 0; sizes && i < mine.count; ++i) sizes[i] = mine.parts[i].bytes;
    achieved();
    mine.returned = true;
    --outstanding_;
    retire_if_idle(mine);
    return Status::kOk;
  }
  if (status != Status::kOk) return status;
  waited();
  return link_.check_deadline(mine.started_ns, waits_for(mine), mine.parts[0].capacity);
}

// Reads are of this host: they complete whatever becomes of the link.
Status RecvCommImpl::flush(const void* data, const MemoryRegion* region, Request** request) {
  const Call call(*this);
  Status status = Status::kOk;
  FlushRequest* const begun = flushes_.begin(data, region, link_.now_ns(), &status);
  if (status != Status::kOk) return link_.fail(flushes_.failure());
  achieved();
  *request = begun;
  return Status::kOk;
}

Status RecvCommImpl::test_flush(FlushRequest& request, bool* done) {
  if (!request.active) {
    return link_.fail(make_error(Status::kInvalid, 0, "test of a flush request that is done"));
  }
  const Status status = flushes_.test(request, link_.now_ns(), done);
  if (status != Status::kOk) return link_.fail(flushes_.failure());
  if (*done) {
    achieved();
  } else {
    (void)move();
    waited();
  }
  return Status::kOk;
}

Status RecvCommImpl::progress() {
  const Call call(*this);
  return move();
}

Status RecvCommImpl::move() {
  const Status status = link_.progress();
  announce_overdue();
  return status;
}

const char* RecvCommImpl::waits_for(const ReceiveRequest& request) {
  const bool begun = std::any_of(request.parts.begin(), request.parts.begin() + request.count,
                                 [](const ReceivePart& part) { return part.arrived != 0; });
  return begun ? "the rest of a message" : "the sender to send";
}

// A request is free for the next receive when the caller, the data and the CTS are done with it. A
// receive can be complete by eager messages while its CTS is still on the way: until the sender has
// read that, its record must stay. After a failure of the link nobody reads it any more.
void RecvCommImpl::retire_if_idle(ReceiveRequest& request) {
  if (!request.returned || request.incomplete > 0) return;
  const bool record_free = !request.cts_open && (request.cts_bytes == 0 || seen(request));
  const uint64_t bit = uint64_t{1} << request.index;
  unretired_ |= bit;
  if (!record_free && link_.status() == Status::kOk) return;
  unretired_ &= ~bit;
  request.active = false;
  free_.push_back(request.index);
}

void RecvCommImpl::on_seen(uint32_t cts_seen) {
  if (static_cast<int32_t>(cts_seen - cts_seen_) <= 0) return;
  cts_seen_ = cts_seen;
  for (uint64_t left = unretired_; left != 0; left &= left - 1) {
    retire_if_idle(requests_[static_cast<size_t>(std::countr_zero(left))]);
  }
}

Status RecvCommImpl::on_arrived(size_t rail, uint32_t immediate, uint64_t bytes) {
  switch (kind_of(immediate)) {
    case ImmediateKind::kData:
      return on_stripe(rail, DataImmediate::unpack(immediate), bytes);
    case ImmediateKind::kEager:
      return on_eager(immediate, bytes);
    case ImmediateKind::kControl:
      if (control_op(immediate) == ControlOp::kWanted) {
        return on_wanted(widen(next_cts_, control_value(immediate), kControlValueMask));
      }
      if (control_op(immediate) != ControlOp::kSeen) break;
      on_seen(widen(cts_seen_, control_value(immediate), kControlValueMask));
      return Status::kOk;
    case ImmediateKind::kCts:
      break;
  }
  return link_.fail_protocol("what only a receiving end sends");
}

Status RecvCommImpl::on_stripe(size_t rail, const DataImmediate& immediate, uint64_t bytes) {
  ReceiveRequest& request = requests_[immediate.entry];
  const bool announced = request.active && request.cts_bytes > 0;
  const bool current = announced && request.generation == immediate.generation;
  if (!current || immediate.sub >= request.count) {
    // Repeated by the NIC, or by a sender that could not know that it had arrived.
    return Status::kOk;
  }
  ReceivePart& part = request.parts[immediate.sub];
  const uint64_t bit = uint64_t{1} << immediate.stripe;
  if (part.complete || (part.arrived & bit)) return Status::kOk;
  if (part.stripes == 0) part.stripes = immediate.stripes;
  if (part.stripes != immediate.stripes || immediate.stripe >= part.stripes) {
    return link_.fail_protocol("stripes that do not fit together");
  }
  eager_streak_ = 0;
  part.arrived |= bit;
  part.bytes += bytes;
  if (part.in_device) flushes_.delivered(link_.device_rail(rail));
  on_seen(request.sequence + 1);
  if (part.bytes > part.capacity) return link_.fail_protocol("more bytes than the receive takes");
  if (part.arrived == ~uint64_t{0} >> (kMaxStripes - part.stripes)) complete(request, part);
  if (request.returned) retire_if_idle(request);
  return Status::kOk;
}

void RecvCommImpl::complete(ReceiveRequest& request, ReceivePart& part) {
  part.complete = true;
  --request.incomplete;
}

bool RecvCommImpl::on_sent(const WorkId& cookie, uint64_t* bytes) {
  ReceiveRequest& request = requests_[cookie.index % kCtsEntries];
  if (!request.cts_open || request.generation != cookie.generation) return false;
  request.cts_open = false;
  *bytes = request.cts_bytes;
  retire_if_idle(request);
  return true;
}

void RecvCommImpl::fence_record(const RailLife& life, size_t bearer, Work* work) {
  const size_t offset = fence_offset(link_.rail_count(), life.rail);
  FenceRecord record;
  record.rail = life.rail;
  record.epoch = life.epoch;
  record.next_cts = next_cts_;
  for (const ReceiveRequest& request : requests_) {
    FenceRecord::Entry& entry = record.entries[request.index];
    entry.active = request.active && request.cts_bytes > 0;
    entry.sequence = request.sequence;
    for (uint32_t i = 0; i < request.count; ++i) {
      entry.arrived[i] = request.parts[i].complete ? ~uint64_t{0} : request.parts[i].arrived;
    }
  }
  std::memcpy(outbox_.at(offset), &record, sizeof record);
  *work = link_.write_of(outbox_, offset, sizeof record, bearer);
  // Part of a stripe that has not arrived may be on its way to the device, and must not get there
  // after its second copy.
  flushes_.delivered(link_.device_rail(life.rail));
}

Status RecvCommImpl::on_fenced(const RailLife& life) {
  for (ReceiveRequest& request : requests_) {
    if (!request.active || request.cts_bytes == 0 || request.cts_rail != life.rail) continue;
    if (request.cts_open || !seen(request)) submit_cts(request, true);
  }
  reported_ = consumed_;
  link_.submit_control(ControlOp::kCredit, consumed_);
  return Status::kOk;
}

JoinRecordPlaces RecvCommImpl::join_records(size_t rail) const {
  return {inbox_.data() + eager_join_offset(eager_max_, rail), &outbox_,
          cts_join_offset(link_.rail_count(), rail)};
}

}  // namespace slime
