// The way of a write: posted, on the wire, arrived, in memory, reported, confirmed. Below: the pool
// of writes in flight, and where their bytes are read from.
#include <algorithm>
#include <cstring>

#include "test/support/sim/sim_rail.h"

#include "transports/channel_common.h"

namespace slime::sim {
namespace {

uint64_t cost_of(const InFlightWrite& write) { return write.work.length + kWorkOverheadBytes; }

bool is_confirmed(const Endpoint& sender, const Work& work) {
  return sender.options.confirm_delivery && !work.unconfirmed;
}

uint64_t pair_rate_mbps(const Rail& a, const Rail& b) {
  const uint64_t mine = a.model().rate_mbps;
  const uint64_t other = b.model().rate_mbps;
  return mine == 0 || other == 0 ? std::max(mine, other) : std::min(mine, other);
}

// Eight bytes a step; only has to notice a change, not to resist one.
uint64_t hash_bytes(const std::byte* data, size_t bytes) {
  uint64_t hash = bytes * 0x9e3779b97f4a7c15;
  for (; bytes >= 8; bytes -= 8, data += 8) {
    uint64_t word;
    std::memcpy(&word, data, 8);
    hash = (hash ^ word) * 0xff51afd7ed558ccd;
    hash ^= hash >> 32;
  }
  uint64_t rest = 0;
  if (bytes > 0) std::memcpy(&rest, data, bytes);
  return (hash ^ rest) * 0xff51afd7ed558ccd;
}

}  // namespace

bool Network::post_one(Endpoint& end, const Work& work) {
  Rail& rail = *end.rail;
  if (work.length > rail.caps().max_message_bytes) {
    ++violations_.bad_calls;
    fail_locally(end, make_error(Status::kInvalid, 0,
                                 "posted %u bytes in one work, at most %llu fit", work.length,
                                 static_cast<unsigned long long>(rail.caps().max_message_bytes)));
    return false;
  }
  if (work.length > 0 && !rail.is_local(work.local_key, work.local, work.length)) {
    ++violations_.local_access;
    fail_source(end, work);
    return false;
  }
  ++end.outstanding;
  end.counters->works.add();
  end.counters->bytes_sent.add(work.length);
  const uint64_t posted = ++rail.works_posted_;
  Endpoint* peer = find(end.peer);
  if (peer != nullptr && !end.disconnected) {
    put_on_wire(end, *peer, work);
  } else if (!is_confirmed(end, work)) {
    end.sent.push({work.cookie, false});  // as a kernel does whose path is dead
  }
  if (posted == rail.model().dies_after_works) {
    schedule(now_ns_, Event::Kind::kDeath, {rail.id_, rail.epoch_});
  }
  return true;
}

void Network::put_on_wire(Endpoint& end, const Endpoint& peer, const Work& work) {
  Rail& rail = *end.rail;
  const uint64_t rate = pair_rate_mbps(rail, *peer.rail);
  const uint64_t bytes_ps = rate == 0 ? 0 : work.length * uint64_t{8'000'000} / rate;
  rail.wire_free_ps_ =
      std::max(rail.wire_free_ps_, now_ns_ * 1000) + bytes_ps + rail.model().wire_work_ns * 1000;
  const uint64_t left_ns = (rail.wire_free_ps_ + 999) / 1000;
  InFlightWrite& write = new_write(end, peer, work);
  write.arrives_ns = plan_arrival(end, peer, left_ns);
  const Name name{write.index, write.generation};
  if (!is_confirmed(end, work)) schedule(left_ns, Event::Kind::kLeftWire, name);
  schedule(write.arrives_ns, Event::Kind::kArrive, name);
}

uint64_t Network::plan_arrival(Endpoint& end, const Endpoint& peer, uint64_t left_ns) {
  const RailModel& model = end.rail->model();
  const bool ordered = end.rail->caps().ordered;
  uint64_t arrives_ns = left_ns + latency_ns(end, peer);
  if (!ordered && model.jitter_ns > 0) arrives_ns += random_.up_to(model.jitter_ns);
  if (random_.chance(model.delay_ppm)) arrives_ns += random_.up_to(model.delay_ns);
  if (ordered) arrives_ns = std::max(arrives_ns, end.last_arrival_ns);
  end.last_arrival_ns = std::max(arrives_ns, end.last_arrival_ns);
  return arrives_ns;
}

void Network::leave_wire(InFlightWrite& write) {
  Endpoint* sender = find(write.sender);
  if (sender == nullptr || !write.sender_waits) return;
  sender->withheld.push(write.index);
  release_withheld(*sender);
}

void Network::release_withheld(Endpoint& sender) {
  while (!sender.withheld.empty()) {
    InFlightWrite& write = writes_[sender.withheld.front()];
    const uint64_t unreported = sender.unreported_bytes;
    const bool fits = !write.receiver_waits || unreported == 0 ||
                      unreported + cost_of(write) <= sender.rail->model().window_bytes;
    if (!fits) return;
    sender.withheld.pop();
    mark_sent(sender, write);
  }
}

void Network::mark_sent(Endpoint& sender, InFlightWrite& write) {
  if (!keep_copy(write)) return fail_source(sender, write.work);
  if (write.receiver_waits) {
    write.counted = true;
    sender.unreported_bytes += cost_of(write);
  }
  confirm(write);
}

void Network::arrive(InFlightWrite& write) {
  write.on_wire = false;
  Endpoint* receiver = find(write.receiver);
  const bool polled = receiver != nullptr && !receiver->rail->caps().arrives_unpolled;
  // A receiver that must be polled takes nothing more once poll() has returned the failure.
  const bool kept_out =
      receiver != nullptr && (receiver->fenced || (polled && receiver->failure_returned));
  outcomes_.fenced_off += kept_out;
  if (receiver == nullptr || kept_out || (!polled && !deliver(*receiver, write))) {
    write.receiver_waits = false;
    return end_if_done(write);
  }
  receiver->arrivals.push({write.index, write.work.immediate, write.work.length});
}

bool Network::deliver(Endpoint& receiver, InFlightWrite& write) {
  const Work& work = write.work;
  if (work.length > 0) {
    std::byte* const target = receiver.rail->target_of(work);
    if (target == nullptr) {
      ++violations_.remote_access;
      refuse_write(receiver, write);
      return false;
    }
    const std::byte* source = source_of(write);
    if (source == nullptr) {
      ++violations_.local_access;
      if (Endpoint* sender = find(write.sender)) fail_source(*sender, work);
      return false;
    }
    receiver.rail->write_memory(work, target, source, work.length);
  }
  write.delivered = true;
  if (write.copy != nullptr) buffers_.give_back(std::move(write.copy), work.length);
  if (receiver.rail->caps().confirms_in_hardware) schedule_confirmation(receiver, write);
  return true;
}

bool Network::report(Endpoint& end, Done* done) {
  const Arrival arrival = end.arrivals.front();
  end.arrivals.pop();
  if (arrival.write != kNone) {
    InFlightWrite& write = writes_[arrival.write];
    const bool delivered = write.delivered || deliver(end, write);
    write.receiver_waits = false;
    if (!delivered) return end_if_done(write), false;
    reported(end, write);
    end.counters->arrivals.add();
    end.counters->bytes_received.add(arrival.bytes);
    repeat_later(Event::Kind::kRepeatArrived, end.rail->model().repeat_arrived_ppm, end,
                 uint64_t{arrival.bytes} << 32 | arrival.immediate);
  }
  *done = slime::arrived(arrival.immediate, arrival.bytes);
  return true;
}

void Network::reported(const Endpoint& end, InFlightWrite& write) {
  Endpoint* sender = find(write.sender);
  if (sender != nullptr && write.counted) {
    sender->unreported_bytes -= cost_of(write);
    release_withheld(*sender);
  }
  if (!end.rail->caps().confirms_in_hardware) schedule_confirmation(end, write);
  end_if_done(write);
}

void Network::schedule_confirmation(const Endpoint& receiver, const InFlightWrite& write) {
  const Endpoint* const sender = find(write.sender);
  if (sender == nullptr || !write.sender_waits || !is_confirmed(*sender, write.work)) return;
  schedule(now_ns_ + latency_ns(receiver, *sender), Event::Kind::kConfirmed,
           {write.index, write.generation});
}

void Network::confirm(InFlightWrite& write) {
  Endpoint* sender = find(write.sender);
  write.sender_waits = false;
  if (sender != nullptr) {
    sender->sent.push({write.work.cookie, false});
    repeat_later(Event::Kind::kRepeatSent, sender->rail->model().repeat_sent_ppm, *sender,
                 write.work.cookie);
  }
  end_if_done(write);
}

void Network::repeat_later(Event::Kind kind, uint32_t ppm, const Endpoint& end, uint64_t payload) {
  if (!random_.chance(ppm)) return;
  schedule(now_ns_ + random_.up_to(end.rail->model().repeat_ns), kind, end.name, payload);
}

InFlightWrite& Network::new_write(Endpoint& sender, const Endpoint& receiver, const Work& work) {
  if (free_writes_.empty()) {
    free_writes_.push_back(static_cast<Index>(writes_.size()));
    writes_.emplace_back().index = free_writes_.back();
  }
  InFlightWrite& write = writes_[free_writes_.back()];
  free_writes_.pop_back();
  write.work = work;
  write.sender = sender.name;
  write.receiver = receiver.name;
  write.order = ++orders_;
  write.sender_waits = write.receiver_waits = write.on_wire = true;
  write.delivered = write.counted = false;
  write.source_hash = check_sources_ ? hash_bytes(work.local, work.length) : 0;
  ++sender.in_flight;
  return write;
}

void Network::end_write(InFlightWrite& write) {
  write.sender_waits = write.receiver_waits = write.on_wire = false;
  if (write.copy != nullptr) buffers_.give_back(std::move(write.copy), write.work.length);
  if (Endpoint* sender = find(write.sender)) --sender->in_flight;
  ++write.generation;
  free_writes_.push_back(write.index);
}

void Network::end_if_done(InFlightWrite& write) {
  if (!write.sender_waits && !write.receiver_waits) end_write(write);
}

const std::byte* Network::source_of(const InFlightWrite& write) {
  const Work& work = write.work;
  if (write.copy != nullptr || work.length == 0) return write.copy.get();
  Endpoint* sender = find(write.sender);
  const bool readable =
      sender != nullptr && sender->rail->is_local(work.local_key, work.local, work.length);
  if (!readable) return nullptr;
  if (check_sources_ && hash_bytes(work.local, work.length) != write.source_hash) {
    ++violations_.source_changed;
  }
  return work.local;
}

bool Network::keep_copy(InFlightWrite& write) {
  if (write.delivered || write.copy != nullptr || write.work.length == 0) return true;
  const std::byte* source = source_of(write);
  if (source == nullptr) {
    ++violations_.local_access;
    return false;
  }
  write.copy = buffers_.take(write.work.length);
  std::memcpy(write.copy.get(), source, write.work.length);
  return true;
}

void Network::drop_arrival(Endpoint& end) {
  const Index index = end.arrivals.front().write;
  end.arrivals.pop();
  if (index == kNone) return;
  writes_[index].receiver_waits = false;
  end_if_done(writes_[index]);
}

// What was delivered is confirmed, or may have been; what did not land must not any more.
void Network::drop_undelivered(Endpoint& end) {
  for (size_t left = end.arrivals.size(); left > 0; --left) {
    const Arrival arrival = end.arrivals.front();
    if (arrival.write != kNone && !writes_[arrival.write].delivered) {
      ++outcomes_.fenced_off;
      drop_arrival(end);
      continue;
    }
    end.arrivals.pop();
    end.arrivals.push(arrival);
  }
}

}  // namespace slime::sim
