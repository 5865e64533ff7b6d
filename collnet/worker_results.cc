// What a worker makes of a result.
#include <cstring>
#include <utility>

#include "collnet/worker.h"

namespace slime {
namespace {

constexpr uint32_t kMostDamaged = 8;  // results of one round

Scales scales_in(const sap::Header& header) {
  return {.exponents = {header.exponents[0], header.exponents[1]}, .special = header.special};
}
bool same_exponents(const Scales& one, const Scales& other) {
  return one.exponents[0] == other.exponents[0] && one.exponents[1] == other.exponents[1];
}

}  // namespace

void Worker::on_result(const sap::Header& header, std::span<const std::byte> payload,
                       uint64_t now_ns) {
  Slot& slot = slots_[header.slot];
  if (!slot.waiting || !sap::answers(header.epoch, slot.epoch)) {
    ++counters_.stale;
    return;
  }
  Running& running = *operation_of(slot.chunk);
  if (!fits(header) || !is_intact(running, header, payload)) {
    return on_damaged(slot, header);
  }
  ++counters_.results;
  last_arrived_.reset();
  suspected_.reset();
  if (!slot.resent) round_trip_.measured(now_ns - slot.first_sent_ns);
  // That peer has resumed too, and has forgotten the exponents of the next round (worker_move.cc).
  const bool from_peer = slot.holder != kNobody;
  slot.waiting = false;
  slot.holder = kNobody;
  keep(header, payload);
  slot.epoch = sap::next_epoch(slot.epoch);
  finish_round(header.slot, running, header,
               sap::is_doubled(header.op) ? sap::first_copy(payload) : payload);
  if (from_peer) forget_exponents(slot);
  begin_round(header.slot, now_ns);
}

// Damage on the way is gone when the time-out has asked again; damage in the switch's memory stays.
void Worker::on_damaged(Slot& slot, const sap::Header& header) {
  ++counters_.corrupt;
  if (++slot.damaged < kMostDamaged) return;
  Error error = make_error(Status::kRemote, 0,
                           "in-network allreduce: %u results of slot %u, round %u (job %u, "
                           "generation %u) were not what the ranks' contributions come to, by "
                           "the check that travels with them; the switch, or the rank that "
                           "serves the slot without it, has a fault, likely in memory",
                           slot.damaged, header.slot, header.epoch, job_, generation_);
  if (!trouble_) trouble_ = std::move(error);
}

// The switch has folded only what had the shape of the first; this worker's must have had it too.
bool Worker::fits(const sap::Header& header) const {
  sap::Header own;
  (void)sap::decode({packet_of(header.slot), slots_[header.slot].packet_bytes}, &own);
  return header.format == own.format && header.op == own.op && header.lanes == own.lanes &&
         ((header.flags ^ own.flags) & sap::flag::kExponentsOnly) == 0;
}

// The check covers the payload of sums, the second copy that of all others. Scales are maxima, so
// they are at least what this worker said: less would have its numbers clamped.
bool Worker::is_intact(const Running& running, const sap::Header& header,
                       std::span<const std::byte> payload) const {
  const Slot& slot = slots_[header.slot];
  for (int i : {0, 1}) {
    if (header.exponents[i] < slot.own_next.exponents[i]) return false;
  }
  if ((header.special & slot.own_next.special) != slot.own_next.special) return false;
  const bool has_image = !sap::is_doubled(header.op) && !payload.empty();
  const uint32_t count = piece_of(running, slot.chunk).count;
  const uint32_t image = has_image ? running.payload.image_of(payload.data(), count) : 0;
  return sap::verifies(header, payload, image, options_.contributors);
}

void Worker::finish_round(uint32_t index, Running& running, const sap::Header& header,
                          std::span<const std::byte> payload) {
  Slot& slot = slots_[index];
  if (slot.stage == Stage::kFlags) {
    std::memcpy(flags_of(index), payload.data(), payload.size());
    slot.flagged = true;
    return;
  }
  if (slot.stage == Stage::kFine) return finish_fine(index, running, payload);
  if (slot.stage == Stage::kUpper) {
    std::memcpy(earlier_of(index), payload.data(), payload.size());
    slot.upper = true;
    return;
  }
  if (slot.stage == Stage::kGuess) return finish_guess(index, running, header, payload);
  if (slot.stage == Stage::kData && !finish_data(index, running, header, payload)) return;
  slot.scales = scales_in(header);
  slot.agreed = !(header.special & sap::special::kUnknown);
}

void Worker::finish_fine(uint32_t index, const Running& running,
                         std::span<const std::byte> payload) {
  Slot& slot = slots_[index];
  const uint32_t count = piece_of(running, slot.chunk).count;
  running.payload.take_fine_exponents(payload.data(), count, slot.fine_rounds, earlier_of(index));
  slot.fine = ++slot.fine_rounds == running.payload.fine_rounds(count);
}

void Worker::finish_guess(uint32_t index, Running& running, const sap::Header& header,
                          std::span<const std::byte> payload) {
  Slot& slot = slots_[index];
  const Scales found = scales_in(header);
  const bool right = same_exponents(found, slot.guess) && !(found.special & kNotFinite);
  slot.agreed = true;
  if (right) {
    if (finish_data(index, running, header, payload)) slot.agreed = false;
    return;
  }
  ++counters_.wrong_guesses;
  slot.scales = found;
}

// False: numbers were lost; once more, finer.
bool Worker::finish_data(uint32_t index, Running& running, const sap::Header& header,
                         std::span<const std::byte> payload) {
  Slot& slot = slots_[index];
  const bool scaled = running.payload.scaled();
  // No worker says so of whole numbers, but nothing checks that the switch does not.
  slot.coarse = scaled && !slot.fine && Payload::is_coarse(header.special);
  if (slot.coarse) return false;
  deliver(index, running, payload);
  slot.chunk += options_.slots;
  slot.steady = scaled && !slot.flagged && same_exponents(slot.scales, slot.guess);
  if (scaled) slot.guess = slot.scales;
  slot.flagged = slot.fine = slot.upper = false;
  slot.fine_rounds = 0;
  return true;
}

void Worker::deliver(uint32_t index, Running& running, std::span<const std::byte> payload) {
  const Slot& slot = slots_[index];
  const Piece piece = piece_of(running, slot.chunk);
  if (slot.fine)
    running.payload.unpack_fine(payload.data(), piece.count, earlier_of(index), piece.to);
  else if (slot.upper)
    from_two_rounds(earlier_of(index), payload.data(), piece.count, piece.to);
  else
    running.payload.unpack(payload.data(), piece.count, slot.scales, piece.to);
  if (slot.flagged) running.payload.put_specials(flags_of(index), piece.count, piece.to);
  --running.left;
  counters_.bytes += piece.count * number::element_bytes(running.operation.type);
  retire();
}

}  // namespace slime
