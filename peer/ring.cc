#include "peer/ring.h"

#include <bit>
#include <cstring>

#include "base/check.h"

namespace slime {

size_t Ring::rail_for(size_t bytes, size_t wanted) const {
  return wanted != kNoRail ? wanted : link_.rails().quickest_rail(bytes);
}

bool Ring::rail_has_room(size_t bytes, uint32_t works, size_t wanted) const {
  const LinkRails& rails = link_.rails();
  if (rails.up_count() == 0) return false;
  const size_t rail = rail_for(bytes, wanted);
  return rails[rail].up() && rails.room(rail) >= works;
}

// The slots before the end of the ring that a record of so many slots leaves empty.
uint32_t Ring::left_over(uint32_t slots) const {
  const uint32_t left = kSlots - sent_ % kSlots;
  return slots <= left ? 0 : left;
}

bool Ring::slots_are_free(size_t bytes) const {
  const uint32_t slots = slots_of(bytes), before = left_over(slots);
  return sent_ - peer_took_ + before + slots <= kSlots &&
         (open_ & (bits(sent_, before) | bits(sent_ + before, slots))) == 0;
}

// Other threads may change which rail is the quickest until the record is submitted, which does no
// harm: rails keep places for a few works more.
bool Ring::has_room(size_t bytes, size_t rail) const {
  if (!slots_are_free(bytes)) return false;
  if (left_over(slots_of(bytes)) == 0) return rail_has_room(sizeof(Header) + bytes, 1, rail);
  return rail_has_room(sizeof(Header) + bytes, 2, rail) && rail_has_room(sizeof(Header), 2, rail);
}

Ring::Numbers Ring::put(uint16_t kind, Parts parts, size_t rail) {
  size_t bytes = 0;
  for (const auto part : parts) bytes += part.size();
  SLIME_CHECK(kind != kFiller && bytes <= kMostBytes && slots_are_free(bytes));
  SLIME_CHECK(place_.prompt || bytes <= kOneSlotBytes);
  const uint32_t before = left_over(slots_of(bytes));
  if (before > 0) {
    const Numbers filler = begin(kFiller, before * kSlotBytes - sizeof(Header));
    (void)submit(filler.first % kSlots, rail);
  }
  const Numbers record = begin(kind, bytes);
  std::byte* at = link_.memory().outbox() + offset_of(record.first % kSlots) + sizeof(Header);
  for (const auto part : parts) {
    if (!part.empty()) std::memcpy(at, part.data(), part.size());
    at += part.size();
  }
  link_.rails().hurry(submit(record.first % kSlots, rail));
  return record;
}

// Takes the slots of the next record, and writes its header.
Ring::Numbers Ring::begin(uint16_t kind, size_t bytes) {
  const Numbers record{sent_, sent_ + slots_of(bytes)};
  const Header header{record.first, kind, static_cast<uint16_t>(bytes)};
  std::byte* const image = link_.memory().outbox() + offset_of(record.first % kSlots);
  std::memcpy(image, &header, sizeof header);
  const uint32_t slots = bits(record.first, record.end - record.first);
  refused_ &= ~slots;
  unsaid_ &= ~slots;
  sent_ = record.end;
  return record;
}

void Ring::move() {
  while (lost_ != 0) {
    const auto slot = static_cast<uint32_t>(std::countr_zero(lost_));
    if (!rail_has_room(piece_of(slot).bytes)) break;
    lost_ &= lost_ - 1;
    link_.rails().hurry(submit(slot));
  }
  if (owes_count() && rail_has_room(0)) {
    told_ = taken_;
    count_open_ = true;
    submit_control(place_.taken, told_, kCount, true);
  }
  submit_refusals();
}

void Ring::submit_refusals() {
  if (refusal_ == Refusal::kOwed && rail_has_room(0)) {
    refusal_ = Refusal::kSent;
    submit_control(kRefused, named(taken_), kRefusal);
  }
  while (unsaid_ != 0 && rail_has_room(0)) {
    const auto slot = static_cast<uint32_t>(std::countr_zero(unsaid_));
    unsaid_ &= unsaid_ - 1;
    submit_control(kRefusalSeen, named(header_in(slot).sequence), kSeenSlots + slot);
  }
}

bool Ring::owes_count() const {
  return !count_open_ && taken_ - told_ >= (place_.prompt ? 1 : kSlots / 2);
}

Ring::Header Ring::header_in(uint32_t slot) const {
  Header header;
  std::memcpy(&header, link_.memory().outbox() + offset_of(slot), sizeof header);
  return header;
}

OutboxPiece Ring::piece_of(uint32_t slot) const {
  const Header header = header_in(slot);
  return {offset_of(slot), sizeof header + (header.kind == kFiller ? 0 : header.bytes)};
}

// Returns the rail.
size_t Ring::submit(uint32_t slot, size_t wanted) {
  LinkRails& rails = link_.rails();
  const Header header = header_in(slot);
  const OutboxPiece piece = piece_of(slot);
  const size_t rail = rail_for(piece.bytes, wanted);
  open_ |= bits(slot, slots_of(header.bytes));
  rails.submit(rail, rails.write_of(piece, rail, control_immediate(place_.record, header.sequence)),
               this, slot);
  return rail;
}

// A count needs no confirmation: when a rail has died the newest one is sent again.
void Ring::submit_control(ControlOp op, uint32_t value, uint32_t part, bool unconfirmed) {
  LinkRails& rails = link_.rails();
  const size_t rail = rails.quickest_rail(0);
  Work work = rails.write_of({}, rail, control_immediate(op, value));
  work.unconfirmed = unconfirmed;
  rails.submit(rail, work, this, part);
}

void Ring::on_done(uint32_t part) {
  if (part == kCount) {
    count_open_ = false;
  } else if (part < kSlots) {
    SLIME_CHECK(open_ & bit(part));
    close(part);
  }
}

void Ring::close(uint32_t slot) { open_ &= ~bits(slot, slots_of(header_in(slot).bytes)); }

// A record that the peer took, by a count that has come since, is not written again.
void Ring::on_lost(uint32_t part) {
  if (part == kCount) {
    count_open_ = false;  // count_again() follows
  } else if (part == kRefusal) {
    if (refusal_ == Refusal::kSent) refusal_ = Refusal::kOwed;
  } else if (part >= kSeenSlots) {
    unsaid_ |= bit(part - kSeenSlots) & refused_;  // unless another record has the slot
  } else if (static_cast<int32_t>(header_in(part).sequence - peer_took_) < 0) {
    close(part);
  } else {
    lost_ |= bit(part);
  }
}

void Ring::change_lost(const Numbers& record, uint16_t kind) {
  SLIME_CHECK(is_lost(record) && kind != kFiller);
  const uint32_t slot = record.first % kSlots;
  Header header = header_in(slot);
  header.kind = kind;
  std::memcpy(link_.memory().outbox() + offset_of(slot), &header, sizeof header);
}

Status Ring::on_arrived(ControlOp op, uint32_t value) {
  if (op == place_.record) return on_record(widen(taken_, value, kControlValueMask));
  if (op == place_.taken) return on_count(widen(peer_took_, value, kControlValueMask));
  if (op == kRefused) return on_refusal(widen(peer_took_, value & kNumberMask, kNumberMask));
  on_refusal_seen(widen(taken_, value & kNumberMask, kNumberMask));
  return Status::kOk;
}

Status Ring::on_record(uint32_t number) {
  if (static_cast<int32_t>(number - taken_) < 0) return Status::kOk;  // it comes twice
  if (number - taken_ >= kSlots) return link_.context().fail_protocol("a record too early");
  here_ |= bit(number);
  return Status::kOk;
}

Status Ring::on_count(uint32_t count) {
  if (static_cast<int32_t>(count - peer_took_) < 0) return Status::kOk;  // an older one
  if (count - peer_took_ > sent_ - peer_took_) {
    return link_.context().fail_protocol("that it took records which were not sent");
  }
  peer_took_ = count;
  return Status::kOk;
}

// One that comes twice may come late.
Status Ring::on_refusal(uint32_t number) {
  if (static_cast<int32_t>(number - peer_took_) < 0) return Status::kOk;
  if (number - peer_took_ >= sent_ - peer_took_) {
    return link_.context().fail_protocol("that it refuses a record which was not sent");
  }
  refused_ |= bit(number);
  unsaid_ |= bit(number);
  return Status::kOk;
}

void Ring::on_refusal_seen(uint32_t number) {
  const bool waits = refusal_ == Refusal::kSent || refusal_ == Refusal::kOwed;
  if (waits && number == taken_) refusal_ = Refusal::kSeen;
}

// The peer may write into its slots at any time, so the record is copied, and the copy is used.
Result<std::optional<Record>> Ring::look() {
  while ((here_ & bit(taken_)) != 0 && refusal_ == Refusal::kNone) {
    const uint32_t slot = taken_ % kSlots;
    const std::byte* const image = link_.memory().inbox() + offset_of(slot);
    Header header;
    std::memcpy(&header, image, sizeof header);
    next_slots_ = slots_of(header.bytes);
    if (header.sequence != taken_ || header.bytes > kMostBytes || slot + next_slots_ > kSlots) {
      (void)link_.context().fail_protocol("a record whose header is damaged");
      return fail(link_.context().failure());
    }
    if (header.kind != kFiller) {
      std::memcpy(record_.data(), image + sizeof header, header.bytes);
      return Record{header.kind, std::span(record_).first(header.bytes)};
    }
    take();
  }
  return std::nullopt;
}

void Ring::take() {
  SLIME_CHECK(here_ & bit(taken_));
  here_ &= ~bits(taken_, next_slots_);
  refusal_ = Refusal::kNone;
  taken_ += next_slots_;
}

void Ring::refuse() {
  SLIME_CHECK((here_ & bit(taken_)) != 0 && refusal_ == Refusal::kNone);
  refusal_ = Refusal::kOwed;
}

}  // namespace slime
