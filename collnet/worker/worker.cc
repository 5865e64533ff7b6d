#include "collnet/worker/worker.h"

#include <algorithm>
#include <utility>

#include "collnet/worker/stages.h"

namespace slime {
namespace {

constexpr uint32_t kMostDamaged = 8;  // results of one round

// Of rounds, by stage.
constexpr uint64_t WorkerCounters::*kRounds[] = {
    &WorkerCounters::exponent_rounds, &WorkerCounters::guess_rounds, &WorkerCounters::flag_rounds,
    &WorkerCounters::fine_rounds,     &WorkerCounters::upper_rounds,
};

// A bit for each rail on which the switch has not answered some slot.
uint32_t silent_rails(std::span<const Slot> slots, const JobRoute& route,
                      const SwitchHealth& health) {
  uint32_t silent = 0;
  for (uint32_t index = 0; index < slots.size(); ++index) {
    const uint32_t rail = route.rail_of(index);
    const Slot& slot = slots[index];
    if (slot.waiting && health.is_silent(rail, slot.timer.observed_ns)) silent |= 1u << rail;
  }
  return silent;
}

// Only the result right before this worker's round can be wanted: workers are at most one round
// apart.
void answer_peer(const sap::Header& query, Slot& slot, const sap::Contributors& all,
                 PacketSender& sender) {
  if (sap::next_epoch(query.epoch) != slot.epoch || query.child >= all.count) return;
  const auto packet = slot.kept.packet_for(sender.route(), all);
  if (!packet.empty()) sender.send({Destination::Kind::kRank, query.child, 0}, packet);
}

}  // namespace

Result<std::unique_ptr<Worker>> Worker::open(const WorkerOptions& options, Datagrams& network) {
  const auto bad = [](const char* what) {
    return fail(Status::kInvalid, "in-network allreduce: %s", what);
  };
  if (options.slots == 0 || options.slots > sap::kMaxSlots) {
    return bad("a job has 1 to 65536 slots");
  }
  if (options.lanes < kLeastLanes || options.lanes > sap::kMaxLanes) {
    return bad("a packet has 16 to 2048 lanes (32-bit words)");
  }
  if (options.contributors == 0 || options.contributors > number::kMaxWorkers ||
      options.rank >= options.contributors || options.child >= sap::kMaxChildren ||
      options.route.shards == 0 || options.route.shards > sap::kMaxShards ||
      options.route.rails == 0 || options.route.rails > sap::kMaxRails) {
    return bad("a job of this shape cannot be");
  }
  if (!sap::suffice(options.formats)) {
    return bad("the formats of a job include i32 and u32, and only those of SAP/2");
  }
  return std::unique_ptr<Worker>(new Worker(options, network));
}

Worker::Worker(const WorkerOptions& options, Datagrams& network)
    : options_(options),
      all_(sap::all_ranks(options.contributors)),
      factor_(sap::factor(options.rank)),
      slots_(options.slots),
      memory_(give_memory(slots_, options.lanes)),
      sender_(options.route, options.rank, options.child, options.contributors, network),
      timers_(options.round_trip, options.suspect_ns),
      health_(options.switch_timeout_ns, options.suspect_ns),
      stragglers_(options_.branches, options.branch, options.contributors) {
  for (uint32_t i = 0; i < options.slots; ++i) slots_[i].chunk = i;
}

Status Worker::start(const Operation& operation, uint64_t now_ns, uint64_t* ticket) {
  if (failed_) return failure_.status;
  if (!Payload::supports(operation.type, operation.op)) return Status::kUnsupported;
  if (room() == 0) return Status::kAgain;
  health_.observe(now_ns);
  const uint64_t first = operations_.next_chunk();
  *ticket = operations_.push(operation, payload_of(operation));
  ++counters_.operations;
  // The first chunk of each slot; the others follow when the one before is done.
  const uint64_t end = std::min(operations_.next_chunk(), first + options_.slots);
  for (uint64_t chunk = first; chunk < end; ++chunk) {
    const uint32_t index = sap::slot_of(chunk, options_.slots);
    if (slots_[index].chunk == chunk && !slots_[index].waiting) begin_round(index, now_ns);
  }
  return Status::kOk;
}

void Worker::give_up(Error error) {
  if (!std::exchange(failed_, true)) failure_ = std::move(error);
}

// Rounds ------------------------------------------------------------------------------------------

// The packet is built once and sent until its result comes. A switch folds the first copy that
// arrives and ignores the others, so all copies must have the same bytes.
void Worker::begin_round(uint32_t index, uint64_t now_ns) {
  Slot& slot = slots_[index];
  const auto chunk = operations_.chunk(slot.chunk);
  if (!chunk) return;  // start() comes back
  slot.state.stage = next_stage(slot.state, *chunk, options_.guesses);
  if (slot.state.stage != Stage::kData) ++(counters_.*kRounds[static_cast<int>(slot.state.stage)]);
  slot.sent = sender_.contribution(index, slot.epoch);
  const auto next = operations_.chunk(slot.chunk + options_.slots);
  contribute(&slot, *chunk, next ? &*next : nullptr, factor_);
  sap::encode(slot.sent, slot.packet);
  slot.waiting = true;
  slot.damaged = 0;
  slot.timer.resent = false;
  timers_.begin(&slot.timer, now_ns, health_.observed_ns());
  transmit(index, now_ns);
}

void Worker::transmit(uint32_t index, uint64_t now_ns) {
  Slot& slot = slots_[index];
  ++counters_.sent;
  timers_.sent(&slot.timer, now_ns);
  if (paused_) return;
  if (slot.holder) return sender_.ask_peer(*slot.holder, index, slot.epoch);
  sender_.send(sender_.served_by(index), slot.contribution());
}

// Packets -----------------------------------------------------------------------------------------

void deliver(Worker& worker, std::span<const std::byte> datagram, uint64_t now_ns) {
  sap::Header header;
  if (sap::decode(datagram, &header) != sap::Fault::kNone) return;
  worker.on_packet(header, datagram.subspan(sap::kHeaderBytes), now_ns);
}

// A wrong token is counted apart, because it may be an attempt to guess the token. A peer's
// question is answered even during a pause, because that peer may have ended its pause already and
// waits for the result. All other packets of a pause are dropped, and their senders send them
// again.
void Worker::on_packet(const sap::Header& header, std::span<const std::byte> payload,
                       uint64_t now_ns) {
  health_.observe(now_ns);
  const JobRoute& route = sender_.route();
  const bool named = !failed_ && route.names(header);
  if (named && header.token != route.token) return void(++counters_.wrong_token);
  if (!named || header.slot >= options_.slots) return void(++counters_.foreign);
  Slot& slot = slots_[header.slot];
  const bool by_peer = header.flags & sap::flag::kFallback;
  if (by_peer && header.type == sap::Type::kQuery) {
    return answer_peer(header, slot, all_, sender_);
  }
  if (paused_) return;
  if (by_peer && header.type == sap::Type::kResultAgain) {
    if (slot.holder) on_result(header, payload, now_ns);
    return;
  }
  if (header.type == sap::Type::kReject) {
    return on_reject(header, sap::wire::get32(payload.data()));
  }
  health_.heard_on(route.rail_of(header.slot));
  switch (header.type) {
    case sap::Type::kResult:
    case sap::Type::kResultAgain:
      return on_result(header, payload, now_ns);
    case sap::Type::kStatus:
      if (!slot.waiting || header.epoch != slot.epoch) return;
      return stragglers_.on_status(
          {sap::wire::get32(payload.data()), header.level > 0, route.direct}, now_ns);
    default:
      ++counters_.foreign;
  }
}

// Checks, keeps and uses a result, in this order: a peer may be given what is kept, so only a
// checked result is kept; and the next round overwrites the slot's memory, so the result is used
// before it.
void Worker::on_result(const sap::Header& header, std::span<const std::byte> payload,
                       uint64_t now_ns) {
  Slot& slot = slots_[header.slot];
  if (!slot.waiting || !sap::answers(header.epoch, slot.epoch)) {
    ++counters_.stale;
    return;
  }
  const Chunk chunk = *operations_.chunk(slot.chunk);
  if (!is_intact(slot, chunk, header, payload, all_)) {
    // Damage on the way is gone when the time-out has asked again. Damage in the switch's memory
    // stays, and comes again with every repetition.
    ++counters_.corrupt;
    if (++slot.damaged >= kMostDamaged) health_.report_damage(damaged_error(header, slot.damaged));
    return;
  }
  ++counters_.results;
  stragglers_.clear();
  timers_.answered(slot.timer, now_ns);
  slot.kept.keep(header, payload);
  slot.waiting = false;
  slot.epoch = sap::next_epoch(slot.epoch);
  const Outcome outcome = finish(&slot, chunk, header, payload);
  if (outcome == Outcome::kWrongGuess) ++counters_.wrong_guesses;
  if (outcome == Outcome::kDelivered) {
    counters_.bytes += chunk.count * element_bytes(chunk.payload->type());
    slot.chunk += options_.slots;
    operations_.complete(chunk);
  }
  // A result from a peer: that peer has discarded its exponents in its move, so this worker must
  // not use the exponents that came with the result either.
  if (std::exchange(slot.holder, {})) slot.state.forget_exponents();
  begin_round(header.slot, now_ns);
}

void Worker::on_reject(const sap::Header& header, uint32_t code) {
  const Slot& slot = slots_[header.slot];
  const bool disagree = static_cast<sap::Rejection>(code) == sap::Rejection::kShape;
  // A refusal of another round answers nothing that this worker has sent, and may be forged. Among
  // the ranks, a rank that has not moved yet refuses packets of the new generation: the time-out
  // sends them again.
  if (!slot.waiting || header.epoch != slot.epoch || (sender_.route().direct && !disagree)) {
    ++counters_.foreign;
    return;
  }
  Error error = reject_error(header, code);
  if (disagree) return give_up(std::move(error));  // the same would happen anywhere
  health_.report(std::move(error));
}

// Time-outs ---------------------------------------------------------------------------------------

void Worker::poll(uint64_t now_ns) {
  health_.observe(now_ns);
  if (failed_ || paused_ || now_ns < timers_.next_ns()) return;
  uint64_t next = UINT64_MAX;
  for (uint32_t index = 0; index < options_.slots && !failed_; ++index) {
    const Slot& slot = slots_[index];
    if (!slot.waiting) continue;
    if (now_ns >= slot.timer.deadline_ns) on_timeout(index, now_ns);
    next = std::min(next, slot.timer.deadline_ns);
  }
  timers_.set_next(next);
}

void Worker::on_timeout(uint32_t index, uint64_t now_ns) {
  const JobRoute& route = sender_.route();
  RoundTimer& timer = slots_[index].timer;
  ++counters_.timeouts;
  if (now_ns - timer.first_sent_ns >= options_.request_timeout_ns) {
    const std::string missing = stragglers_.missing();
    return give_up(missing.empty()
                       ? unanswered_error(route, sender_.served_by(index), timer, now_ns)
                       : overdue_error(missing, timer, now_ns));
  }
  const uint32_t rail = route.rail_of(index);
  if (!route.direct && !health_.trouble() && health_.is_silent(rail, timer.observed_ns)) {
    health_.report_silence(rail, silent_rails(slots_, route, health_), route.rails,
                           unanswered_error(route, sender_.served_by(index), timer, now_ns));
  }
  timers_.timed_out(&timer, now_ns);
  ++counters_.retransmitted;
  transmit(index, now_ns);
  if (timers_.take_query(&timer, now_ns)) ask(index, now_ns);
}

// A lost rail differs from a lost switch by packets that still come on other rails. On rails
// without open rounds no packets come, so questions go out on these too, whose answers show that
// the switch is there.
void Worker::ask(uint32_t index, uint64_t now_ns) {
  const JobRoute& route = sender_.route();
  ++counters_.queries;
  sender_.ask(index, slots_[index].epoch);
  if (route.rails == 1 || now_ns - rails_asked_ns_ < options_.suspect_ns) return;
  rails_asked_ns_ = now_ns;
  for (uint32_t rail = 0; rail < route.rails; ++rail) {
    const uint32_t first = rail * route.shards;
    if (rail != route.rail_of(index) && first < options_.slots)
      sender_.ask(first, slots_[first].epoch);
  }
}

// Moves -------------------------------------------------------------------------------------------

void Worker::epochs(std::span<uint32_t> by_slot) const {
  for (uint32_t index = 0; index < options_.slots; ++index) by_slot[index] = slots_[index].epoch;
}

void Worker::go_on(uint64_t now_ns) {
  paused_ = abandoned_;
  health_.restart(now_ns);
}

// A slot whose result another rank has accepted asks that rank for it: the sum must not be formed
// again, because that rank has contributed to the next round already. All other rounds begin again
// in the new job. Both kinds agree on exponents again: the first kind when the result has come
// (on_result).
void Worker::resume(const JobRoute& route, std::span<const uint32_t> epochs, uint64_t now_ns) {
  sender_.set_route(route);  // for the answers to peers
  if (abandoned_) return;
  stragglers_.clear();
  paused_ = false;
  health_.reset(now_ns);
  for (uint32_t index = 0; index < options_.slots; ++index) {
    Slot& slot = slots_[index];
    slot.holder.reset();
    if (slot.waiting) slot.holder = rank_ahead(epochs, options_.slots, index, slot.epoch);
    if (!slot.holder) {
      slot.state.forget_exponents();
      if (slot.waiting) begin_round(index, now_ns);
      continue;
    }
    slot.damaged = 0;
    slot.timer.resent = true;
    timers_.begin(&slot.timer, now_ns, health_.observed_ns());
    transmit(index, now_ns);
  }
}

}  // namespace slime
