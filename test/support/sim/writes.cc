#include "test/support/sim/writes.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "test/support/sim/sim_rail.h"
#include "transports/channel_common.h"

namespace slime::sim {
namespace {

uint64_t cost_of(const InFlightWrite& write) { return write.work.length + kWorkOverheadBytes; }

bool is_silent(const InFlightWrite& write) {
  return write.leg == Leg::kWrite && write.work.opcode == Opcode::kWrite;
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

bool Writes::is_confirmed(const Endpoint& sender, const Work& work) {
  return work.opcode == Opcode::kWrite ||
         (sender.options.confirm_delivery && !work.unconfirmed && work.opcode != Opcode::kRead);
}

bool Writes::post(Endpoint& end, const Work& work) {
  Rail& rail = *end.rail;
  if (work.length > rail.caps().max_message_bytes) {
    ++core_.violations.bad_calls;
    failures_.fail_locally(
        end, make_error(Status::kInvalid, 0, "posted %u bytes in one work, at most %" PRIu64 " fit",
                        work.length, rail.caps().max_message_bytes));
    return false;
  }
  if (work.length > 0 && !rail.is_local(work.local_key, work.local, work.length)) {
    ++core_.violations.local_access;
    failures_.fail_source(end, work);
    return false;
  }
  const bool read = work.opcode == Opcode::kRead;
  ++(read ? end.sending.reads : end.sending.outstanding);
  end.counters->works.add();
  if (!read) end.counters->bytes_sent.add(work.length);
  const Endpoint* peer = core_.ends.find(end.peer);
  if (peer != nullptr && !end.disconnected) {
    put_on_wire(end, *peer, work, read ? Leg::kRequest : Leg::kWrite);
  } else if (!read && !is_confirmed(end, work)) {
    end.sending.sent.push({work.cookie, false});  // as a kernel does whose path is dead
  }
  rail.count_work();
  return true;
}

InFlightWrite& Writes::put_on_wire(Endpoint& end, const Endpoint& peer, const Work& work, Leg leg) {
  const RailModel& model = end.rail->model();
  const bool ordered = end.rail->caps().ordered && leg == Leg::kWrite;
  const uint32_t bytes = leg == Leg::kRequest ? 0 : work.length;
  const uint64_t left_ns = end.rail->occupy_wire(*peer.rail, bytes);
  uint64_t arrives_ns = left_ns + latency_ns(*end.rail, *peer.rail);
  if (!ordered && model.jitter_ns > 0) arrives_ns += core_.random.up_to(model.jitter_ns);
  if (core_.random.chance(model.delay_ppm)) arrives_ns += core_.random.up_to(model.delay_ns);
  if (ordered) arrives_ns = std::max(arrives_ns, end.sending.last_arrival_ns);
  if (leg == Leg::kWrite) {
    end.sending.last_arrival_ns = std::max(arrives_ns, end.sending.last_arrival_ns);
  }
  InFlightWrite& write = begin_write(end, peer, work, leg);
  write.arrives_ns = arrives_ns;
  if (leg == Leg::kWrite && !is_confirmed(end, work)) {
    core_.schedule(left_ns, Event::Kind::kLeftWire, write.name);
  }
  core_.schedule(arrives_ns, Event::Kind::kArrive, write.name);
  return write;
}

void Writes::handle(const Event& event, InFlightWrite& write) {
  if (event.kind == Event::Kind::kArrive) {
    // A failure may have made the arrival earlier or later than it was planned.
    if (write.on_wire && write.arrives_ns == event.time_ns) arrive(write);
    return;
  }
  // A failure may have decided before what becomes of the kSent.
  if (!write.sender_waits) return;
  if (event.kind == Event::Kind::kConfirmed) return confirm(write);
  Endpoint* sender = core_.ends.find(write.sender);
  if (sender == nullptr) return;
  sender->sending.withheld.push(write.name.index);
  release_withheld(*sender);
}

// The window limits the bytes that are kSent and not yet reported. With none of these, one work of
// any size fits. A work that has been reported needs no room.
void Writes::release_withheld(Endpoint& sender) {
  while (!sender.sending.withheld.empty()) {
    InFlightWrite& write = core_.writes[sender.sending.withheld.front()];
    const uint64_t unreported = sender.sending.unreported_bytes;
    const bool fits = !write.receiver_waits || unreported == 0 ||
                      unreported + cost_of(write) <= sender.rail->model().window_bytes;
    if (!fits) return;
    sender.sending.withheld.pop();
    if (!keep_copy(write)) return failures_.fail_source(sender, write.work);
    if (write.receiver_waits) {
      write.counted = true;
      sender.sending.unreported_bytes += cost_of(write);
    }
    confirm(write);
  }
}

void Writes::arrive(InFlightWrite& write) {
  write.on_wire = false;
  Endpoint* receiver = core_.ends.find(write.receiver);
  const bool polled = receiver != nullptr && !receiver->rail->caps().arrives_unpolled;
  // A receiver that must be polled takes nothing more once poll() has returned the failure; one
  // that has refused a write never does, also what its sender had sent before it failed.
  const bool kept_out = receiver != nullptr && (receiver->fenced || receiver->refused ||
                                                (polled && receiver->failure_returned));
  core_.outcomes.fenced_off += kept_out;
  if (receiver == nullptr || kept_out || (!polled && !deliver(*receiver, write))) {
    write.receiver_waits = false;
    return end_if_done(write);
  }
  receiver->arrivals.push({write.name.index, write.work.immediate, write.work.length});
}

// False: there is nothing to report.
bool Writes::deliver(Endpoint& receiver, InFlightWrite& write) {
  const Work& work = write.work;
  if (write.leg == Leg::kRequest) return answer(receiver, write), false;
  if (!write.moves_nothing()) {
    std::byte* const target = target_of(receiver, write);
    if (target == nullptr) {
      refuse(receiver, write);
      return write.leg == Leg::kAnswer;
    }
    const std::byte* source = source_of(write);
    if (source == nullptr) {
      ++core_.violations.local_access;
      if (Endpoint* sender = core_.ends.find(write.sender)) failures_.fail_source(*sender, work);
      return false;
    }
    place(receiver, write, target, source, work.length);
  }
  write.delivered = true;
  buffers_.give_back(std::move(write.copy), work.length);
  if (receiver.rail->caps().confirms_in_hardware || is_silent(write)) {
    schedule_confirmation(receiver, write);
  }
  if (!is_silent(write)) return true;
  receiver.counters->arrivals.add();
  receiver.counters->bytes_received.add(work.length);
  return false;
}

bool Writes::report(Endpoint& end, Done* done) {
  const Arrival arrival = end.arrivals.front();
  end.arrivals.pop();
  *done = slime::arrived(arrival.immediate, arrival.bytes);
  if (arrival.write == kNone) return true;
  InFlightWrite& write = core_.writes[arrival.write];
  const bool delivered = write.delivered || deliver(end, write);
  const bool was_refused = write.refused;
  write.receiver_waits = false;
  if (!delivered) return end_if_done(write), false;
  if (write.leg == Leg::kAnswer) {
    --end.sending.reads;
    const uint64_t cookie = write.work.cookie;
    *done = was_refused ? slime::refused(cookie) : slime::sent(cookie);
    end_if_done(write);
    if (was_refused && !end.rail->caps().goes_on_after_refusal) {
      failures_.fail_locally(
          end, make_error(Status::kRemote, 0, "the peer refused a read: wrong key or bounds"));
    }
  } else {
    report_write(end, write);
    repeat_later(Event::Kind::kRepeatArrived, end.rail->model().repeat_arrived_ppm, end,
                 uint64_t{arrival.bytes} << 32 | arrival.immediate);
  }
  if (!was_refused) end.counters->bytes_received.add(arrival.bytes);
  return true;
}

void Writes::report_write(Endpoint& end, InFlightWrite& write) {
  Endpoint* sender = core_.ends.find(write.sender);
  if (sender != nullptr && write.counted) {
    sender->sending.unreported_bytes -= cost_of(write);
    release_withheld(*sender);
  }
  if (!end.rail->caps().confirms_in_hardware) schedule_confirmation(end, write);
  end_if_done(write);
  end.counters->arrivals.add();
}

void Writes::schedule_confirmation(const Endpoint& receiver, const InFlightWrite& write) {
  const Endpoint* const sender = core_.ends.find(write.sender);
  if (sender == nullptr || !write.sender_waits || !is_confirmed(*sender, write.work)) return;
  core_.schedule(core_.now_ns + latency_ns(*receiver.rail, *sender->rail), Event::Kind::kConfirmed,
                 write.name);
}

void Writes::confirm(InFlightWrite& write) {
  Endpoint* sender = core_.ends.find(write.sender);
  write.sender_waits = false;
  if (sender != nullptr) {
    sender->sending.sent.push({write.work.cookie, false, write.refused});
    const uint32_t repeat_ppm = write.refused ? 0 : sender->rail->model().repeat_sent_ppm;
    repeat_later(Event::Kind::kRepeatSent, repeat_ppm, *sender, write.work.cookie);
  }
  end_if_done(write);
}

void Writes::repeat_later(Event::Kind kind, uint32_t ppm, const Endpoint& end, uint64_t payload) {
  if (!core_.random.chance(ppm)) return;
  const uint64_t later_ns = core_.random.up_to(end.rail->model().repeat_ns);
  core_.schedule(core_.now_ns + later_ns, kind, end.name, payload);
}

void Writes::report_again(const Event& event, Endpoint& end) {
  if (event.kind == Event::Kind::kRepeatSent) {
    return end.sending.sent.push({event.payload, true, false});
  }
  end.arrivals.push(
      {kNone, static_cast<uint32_t>(event.payload), static_cast<uint32_t>(event.payload >> 32)});
}

InFlightWrite& Writes::begin_write(Endpoint& sender, const Endpoint& receiver, const Work& work,
                                   Leg leg) {
  InFlightWrite& write = core_.writes.take();
  write.leg = leg;
  write.work = work;
  write.sender = sender.name;
  write.receiver = receiver.name;
  write.order = ++orders_;
  write.sender_waits = leg == Leg::kWrite;
  write.receiver_waits = write.on_wire = true;
  write.delivered = write.counted = write.refused = false;
  const bool checked = check_sources_ && leg == Leg::kWrite;
  write.source_hash = checked ? hash_bytes(work.local, work.length) : 0;
  ++sender.sending.in_flight;
  return write;
}

void Writes::end_write(InFlightWrite& write) {
  write.sender_waits = write.receiver_waits = write.on_wire = false;
  buffers_.give_back(std::move(write.copy), write.work.length);
  if (Endpoint* sender = core_.ends.find(write.sender)) --sender->sending.in_flight;
  core_.writes.give_back(write);
}

void Writes::reset() {
  orders_ = 0;
  for (InFlightWrite& write : core_.writes) {
    if (write.in_use()) end_write(write);
  }
  core_.writes.order_free_places();
}

const std::byte* Writes::source_of(const InFlightWrite& write) {
  const Work& work = write.work;
  if (write.copy != nullptr || work.length == 0) return write.copy.get();
  const Endpoint* sender = core_.ends.find(write.sender);
  const bool readable =
      sender != nullptr && sender->rail->is_local(work.local_key, work.local, work.length);
  if (!readable) return nullptr;
  if (check_sources_ && hash_bytes(work.local, work.length) != write.source_hash) {
    ++core_.violations.source_changed;
  }
  return work.local;
}

bool Writes::keep_copy(InFlightWrite& write) {
  if (write.delivered || write.copy != nullptr || write.moves_nothing()) return true;
  const std::byte* source = source_of(write);
  if (source == nullptr) {
    ++core_.violations.local_access;
    return false;
  }
  write.copy = buffers_.take(write.work.length);
  std::memcpy(write.copy.get(), source, write.work.length);
  return true;
}

void Writes::drop_arrival(Endpoint& end) {
  const Index index = end.arrivals.front().write;
  end.arrivals.pop();
  if (index == kNone) return;
  core_.writes[index].receiver_waits = false;
  end_if_done(core_.writes[index]);
}

void Writes::drop_undelivered(Endpoint& end) {
  for (size_t left = end.arrivals.size(); left > 0; --left) {
    const Arrival arrival = end.arrivals.front();
    if (arrival.write != kNone && !core_.writes[arrival.write].delivered) {
      ++core_.outcomes.fenced_off;
      drop_arrival(end);
      continue;
    }
    end.arrivals.pop();
    end.arrivals.push(arrival);
  }
}

}  // namespace slime::sim
