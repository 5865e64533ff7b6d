#include "collnet/worker/stages.h"

#include <algorithm>
#include <cstring>

namespace slime {
namespace {

Scales scales_in(const sap::Header& header) {
  return {.exponents = {header.exponents[0], header.exponents[1]}, .special = header.special};
}

bool same_exponents(const Scales& one, const Scales& other) {
  return one.exponents[0] == other.exponents[0] && one.exponents[1] == other.exponents[1];
}

// The elements, with zeros for NaN and infinities: those are in the flags, and have no number.
const std::byte* finite(const Slot& slot, const Chunk& chunk) {
  if (!slot.state.flagged) return chunk.from;
  copy_finite(chunk.payload->type(), chunk.from, chunk.count, slot.finite);
  return slot.finite;
}

// A digest of the chunk and, for floats, of the exponents that scale it. With that of the shape it
// is the cookie, a part of the salt, so that no check holds where two workers differ in these:
// exponents reach them without a check, and not every switch compares shapes.
uint32_t cookie_of(const ChunkState& state, const Chunk& chunk) {
  const auto number = static_cast<uint32_t>(chunk.number);
  const bool by_scales =
      chunk.payload->scaled() && (state.stage == Stage::kData || state.stage == Stage::kGuess);
  if (!by_scales) return number;
  const auto* const exponents = state.scales.exponents;
  return sap::mixed(number) ^
         sap::mixed(static_cast<uint8_t>(exponents[0]) << 8 | static_cast<uint8_t>(exponents[1]));
}

// Returns the payload's part of the check. `said`: what this worker says in the round's header; it
// gets the bits about numbers that these scales lose (Payload::coarseness()).
uint32_t pack_data(Slot* slot, const Chunk& chunk, Scales* said) {
  const Payload& payload = *chunk.payload;
  const ChunkState& state = slot->state;
  const std::byte* const elements = finite(*slot, chunk);
  slot->sent.lanes = payload.lanes_for(chunk.count);
  if (state.upper) {
    payload.pack_half(elements, chunk.count, slot->earlier, slot->lanes());
    return 0;
  }
  if (state.fine) return payload.pack_fine(elements, chunk.count, slot->earlier, slot->lanes());
  if (payload.scaled()) said->special |= payload.coarseness(elements, chunk.count, state.scales);
  return payload.pack(elements, chunk.count, state.scales, slot->lanes());
}

void unpack_data(const Slot& slot, const Chunk& chunk, const std::byte* lanes) {
  const Payload& payload = *chunk.payload;
  if (slot.state.fine)
    payload.unpack_fine(lanes, chunk.count, slot.earlier, chunk.to);
  else if (slot.state.upper)
    from_two_rounds(slot.earlier, lanes, chunk.count, chunk.to);
  else
    payload.unpack(lanes, chunk.count, slot.state.scales, chunk.to);
  if (slot.state.flagged) put_specials(payload.type(), slot.flags, chunk.count, chunk.to);
}

// Uses the sum. False: numbers were lost beside larger ones of their block, so the sum is
// discarded, and the chunk takes a finer round.
bool finish_data(Slot* slot, const Chunk& chunk, const sap::Header& result,
                 const std::byte* lanes) {
  ChunkState& state = slot->state;
  const bool scaled = chunk.payload->scaled();
  // No worker sets these bits for integers. A switch could, because no check covers them.
  state.coarse = scaled && !state.fine && is_coarse(result.special);
  if (state.coarse) return false;
  unpack_data(*slot, chunk, lanes);
  state.steady = scaled && !state.flagged && same_exponents(state.scales, state.last);
  if (scaled) state.last = state.scales;
  state.flagged = state.fine = state.upper = false;
  state.fine_rounds = 0;
  return true;
}

}  // namespace

// The scales come first, because all later rounds depend on them. Flags, fine exponents and upper
// words are gathered at most once each; the data round that follows uses what there is.
Stage next_stage(const ChunkState& state, const Chunk& chunk, bool guesses) {
  const bool scaled = chunk.payload->scaled();
  if (scaled && !state.agreed) {
    const bool guess = guesses && state.steady && chunk.siblings <= kMostGuessed;
    return guess ? Stage::kGuess : Stage::kExponents;
  }
  if (scaled && (state.scales.special & kNotFinite) && !state.flagged) return Stage::kFlags;
  if (state.coarse && !state.fine) return Stage::kFine;
  if (chunk.payload->in_two_rounds() && !state.upper) return Stage::kUpper;
  return Stage::kData;
}

void contribute(Slot* slot, const Chunk& chunk, const Chunk* next, uint32_t factor) {
  const Payload& payload = *chunk.payload;
  sap::Header& header = slot->sent;
  std::byte* const lanes = slot->lanes();
  Scales said;
  uint32_t image = 0;
  header.format = payload.format();
  header.op = payload.op();
  switch (slot->state.stage) {
    case Stage::kExponents:
      said = payload.scales_of(chunk.from, chunk.count);
      header.flags = sap::flag::kExponentsOnly;
      break;
    case Stage::kFlags:
      header.format = sap::Format::kI32;
      header.op = sap::Op::kOr;
      header.lanes = flag_lanes_for(chunk.count);
      pack_flags(payload.type(), chunk.from, chunk.count, lanes);
      break;
    case Stage::kFine:
      header.format = payload.fine_format();
      header.op = sap::Op::kMax;
      header.lanes = payload.pack_fine_exponents(finite(*slot, chunk), chunk.count,
                                                 slot->state.fine_rounds, lanes);
      break;
    case Stage::kUpper:
      header.format = format_of_upper(payload.type());
      header.lanes = payload.lanes_for(chunk.count);
      payload.pack_half(chunk.from, chunk.count, nullptr, lanes);
      break;
    case Stage::kGuess:
      slot->state.scales = slot->state.last;
      said = payload.scales_of(chunk.from, chunk.count);
      image = pack_data(slot, chunk, &said);
      break;
    case Stage::kData:  // the sum of this chunk, with the exponents of the next one
      if (next)
        said = next->payload->scales_of(next->from, next->count);
      else
        said.special = sap::special::kUnknown;
      image = pack_data(slot, chunk, &said);
      break;
  }
  if (sap::is_doubled(header.op)) {  // a second copy of the lanes instead of a check (check.h)
    image = 0;
    std::memcpy(lanes + 4 * size_t{header.lanes}, lanes, 4 * size_t{header.lanes});
    header.lanes *= 2;
  }
  std::copy_n(said.exponents, 2, header.exponents);
  header.special = said.special;
  header.cookie = cookie_of(slot->state, chunk) ^ sap::shape_digest(header);
  header.check = image + factor * sap::salt(header);
}

// The switch has folded only what had the shape of the first contribution; `sent` must have had it
// too. The check covers the payload of sums, the second copy that of all others. Scales are maxima,
// so they are at least those that this worker sent: with smaller ones its numbers would be clamped.
bool is_intact(const Slot& slot, const Chunk& chunk, const sap::Header& result,
               std::span<const std::byte> payload, const sap::Contributors& all) {
  const sap::Header& sent = slot.sent;
  const bool same_shape = result.format == sent.format && result.op == sent.op &&
                          result.lanes == sent.lanes &&
                          ((result.flags ^ sent.flags) & sap::flag::kExponentsOnly) == 0;
  const bool covers_ours = result.exponents[0] >= sent.exponents[0] &&
                           result.exponents[1] >= sent.exponents[1] &&
                           (result.special & sent.special) == sent.special;
  if (!same_shape || !covers_ours) return false;
  const bool has_image = !sap::is_doubled(result.op) && !payload.empty();
  const uint32_t image = has_image ? chunk.payload->image_of(payload.data(), chunk.count) : 0;
  return sap::verifies(result, payload, image, all);
}

Outcome finish(Slot* slot, const Chunk& chunk, const sap::Header& result,
               std::span<const std::byte> payload) {
  if (sap::is_doubled(result.op)) payload = sap::first_copy(payload);
  const Scales told = scales_in(result);
  ChunkState& state = slot->state;
  Outcome outcome = Outcome::kMoreRounds;
  switch (state.stage) {
    case Stage::kFlags:
      std::memcpy(slot->flags, payload.data(), payload.size());
      state.flagged = true;
      return outcome;
    case Stage::kFine:
      chunk.payload->take_fine_exponents(payload.data(), chunk.count, state.fine_rounds,
                                         slot->earlier);
      state.fine = ++state.fine_rounds == chunk.payload->fine_rounds(chunk.count);
      return outcome;
    case Stage::kUpper:
      std::memcpy(slot->earlier, payload.data(), payload.size());
      state.upper = true;
      return outcome;
    case Stage::kGuess:
      state.agreed = true;
      if (!same_exponents(told, state.last) || (told.special & kNotFinite)) {
        state.scales = told;
        return Outcome::kWrongGuess;
      }
      if (!finish_data(slot, chunk, result, payload.data())) return outcome;
      state.agreed = false;  // this round carried no exponents of the next chunk
      return Outcome::kDelivered;
    case Stage::kData:
      if (!finish_data(slot, chunk, result, payload.data())) return outcome;
      outcome = Outcome::kDelivered;
      break;
    case Stage::kExponents:
      break;
  }
  state.scales = told;
  state.agreed = !(told.special & sap::special::kUnknown);
  return outcome;
}

}  // namespace slime
