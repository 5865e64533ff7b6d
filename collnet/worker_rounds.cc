// How a worker contributes to a round: which one is next, and what its packet says.
#include <cstring>

#include "collnet/worker.h"

namespace slime {

// A small float operation that comes alone would take a round trip for its exponents and one for
// its numbers. Where these did not change the last time, both go at once: numbers scaled as before,
// and the exponents that they need. If these turn out to be the same again, then the sum is what
// two rounds would have given, bit for bit; if not, it was the round for exponents. All workers
// decide alike, as all have accepted the same results of this slot and have the same operations.
// Larger ones are not worth sending twice.
bool Worker::may_guess(const Slot& slot, const Running& running) const {
  constexpr uint64_t kMostChunks = 4;
  return options_.guesses && slot.steady && running.chunks <= kMostChunks;
}

void Worker::begin_round(uint32_t index, uint64_t now_ns) {
  Slot& slot = slots_[index];
  Running* running = operation_of(slot.chunk);
  if (!running) return;  // start() will be back
  const bool scaled = running->payload.scaled();
  slot.stage = Stage::kData;
  if (scaled && !slot.agreed) {
    slot.stage = may_guess(slot, *running) ? Stage::kGuess : Stage::kExponents;
  } else if (scaled && (slot.scales.special & kNotFinite) && !slot.flagged) {
    slot.stage = Stage::kFlags;
  } else if (slot.coarse && !slot.fine) {
    slot.stage = Stage::kFine;
  } else if (running->payload.in_two_rounds() && !slot.upper) {
    slot.stage = Stage::kUpper;
  }
  sap::Header header{.type = sap::Type::kContribution,
                     .format = running->payload.format(),
                     .op = running->payload.op(),
                     .flags = 0,
                     .job = job_,
                     .generation = generation_,
                     .child = child_,
                     .token = token_,
                     .slot = static_cast<uint16_t>(index),
                     .lanes = 0,
                     .epoch = slot.epoch};
  fill(index, *running, piece_of(*running, slot.chunk), &header);
  sap::encode(header, packet_of(index));
  slot.packet_bytes = static_cast<uint32_t>(sap::kHeaderBytes + 4 * size_t{header.lanes});
  slot.waiting = true;
  slot.resent = false;
  start_timers(slot, now_ns);
  transmit(index, now_ns);
}

void Worker::start_timers(Slot& slot, uint64_t now_ns) const {
  slot.attempts = slot.damaged = 0;
  slot.first_sent_ns = now_ns;
  slot.asked_at = attention_.ns();
  slot.query_ns = now_ns + options_.suspect_ns;
}

void Worker::fill(uint32_t index, const Running& running, const Piece& piece, sap::Header* header) {
  std::byte* const lanes = packet_of(index) + sap::kHeaderBytes;
  Slot& slot = slots_[index];
  uint32_t image = 0;
  switch (slot.stage) {
    case Stage::kExponents:
      ++counters_.exponent_rounds;
      slot.own_next = running.payload.scales_of(piece.from, piece.count);
      header->flags = sap::flag::kExponentsOnly;
      break;
    case Stage::kFlags:
      ++counters_.flag_rounds;
      slot.own_next = {};
      header->format = sap::Format::kI32;
      header->op = sap::Op::kOr;
      header->lanes = Payload::flag_lanes_for(piece.count);
      running.payload.pack_flags(piece.from, piece.count, lanes);
      break;
    case Stage::kFine:
      ++counters_.fine_rounds;
      slot.own_next = {};
      header->format = running.payload.fine_format();
      header->op = sap::Op::kMax;
      header->lanes = running.payload.pack_fine_exponents(finite(index, running, piece),
                                                          piece.count, slot.fine_rounds, lanes);
      break;
    case Stage::kUpper:
      ++counters_.upper_rounds;
      slot.own_next = {};
      header->format = running.payload.upper_format();
      header->lanes = running.payload.lanes_for(piece.count);
      running.payload.pack_upper(piece.from, piece.count, lanes);
      break;
    case Stage::kGuess:
      ++counters_.guess_rounds;
      slot.scales = slot.guess;
      slot.own_next = running.payload.scales_of(piece.from, piece.count);
      image = fill_data(index, running, piece, header);
      break;
    case Stage::kData:
      slot.own_next = scales_of(slot.chunk + options_.slots);
      image = fill_data(index, running, piece, header);
      break;
  }
  if (sap::is_doubled(header->op)) {
    image = 0;
    std::memcpy(lanes + 4 * size_t{header->lanes}, lanes, 4 * size_t{header->lanes});
    header->lanes *= 2;
  }
  header->exponents[0] = slot.own_next.exponents[0];
  header->exponents[1] = slot.own_next.exponents[1];
  header->special = slot.own_next.special;
  header->cookie = cookie_of(slot, running) ^ sap::shape_digest(*header);
  header->check = image + sap::salt(*header);
}

// A digest of the chunk and, for floats, of the exponents that scale it. With that of the shape it
// is the cookie, a part of the salt, so that no check holds where two workers differ in these:
// exponents reach them without a check, and not every switch compares shapes.
uint32_t Worker::cookie_of(const Slot& slot, const Running& running) {
  const auto chunk = static_cast<uint32_t>(slot.chunk);
  const bool by_scales =
      running.payload.scaled() && (slot.stage == Stage::kData || slot.stage == Stage::kGuess);
  if (!by_scales) return chunk;
  const auto* const exponents = slot.scales.exponents;
  return sap::mixed(chunk) ^
         sap::mixed(static_cast<uint8_t>(exponents[0]) << 8 | static_cast<uint8_t>(exponents[1]));
}

// Returns the payload's part of the check.
uint32_t Worker::fill_data(uint32_t index, const Running& running, const Piece& piece,
                           sap::Header* header) {
  Slot& slot = slots_[index];
  const Payload& payload = running.payload;
  const std::byte* const elements = finite(index, running, piece);
  std::byte* const lanes = packet_of(index) + sap::kHeaderBytes;
  header->lanes = payload.lanes_for(piece.count);
  uint32_t image = 0;
  if (slot.fine) {
    image = payload.pack_fine(elements, piece.count, earlier_of(index), lanes);
  } else if (slot.upper) {
    payload.pack_lower(elements, piece.count, earlier_of(index), lanes);
  } else {
    image = payload.pack(elements, piece.count, slot.scales, lanes);
  }
  if (payload.scaled() && !slot.fine) {
    slot.own_next.special |= payload.coarseness(elements, piece.count, slot.scales);
  }
  return image;
}

// The elements, with zeros for NaN and infinities.
const std::byte* Worker::finite(uint32_t index, const Running& running, const Piece& piece) {
  if (!slots_[index].flagged) return piece.from;
  running.payload.copy_finite(piece.from, piece.count, scratch_.get());
  return scratch_.get();
}

// What this worker can say of a chunk now.
Scales Worker::scales_of(uint64_t chunk) {
  const Running* running = operation_of(chunk);
  if (!running) return {.special = sap::special::kUnknown};
  const Piece piece = piece_of(*running, chunk);
  return running->payload.scales_of(piece.from, piece.count);
}

void Worker::transmit(uint32_t index, uint64_t now_ns) {
  Slot& slot = slots_[index];
  ++counters_.sent;
  slot.deadline_ns = now_ns + round_trip_.timeout_ns(slot.attempts++);
  if (next_check_ns_ > slot.deadline_ns) next_check_ns_ = slot.deadline_ns;
  if (paused_) return;
  if (slot.holder != kNobody) {
    return query(index, {Destination::Kind::kRank, slot.holder, 0}, sap::flag::kFallback);
  }
  network_.send(served_by(index), {packet_of(index), slot.packet_bytes});
}

}  // namespace slime
