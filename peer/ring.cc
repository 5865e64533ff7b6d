#include "peer/ring.h"

#include <bit>
#include <cstring>

#include "base/check.h"

namespace slime {

bool Ring::rail_has_room(size_t bytes) const {
  LinkRails& rails = link_.rails();
  return rails.up_count() > 0 && rails.room(rails.quickest_rail(bytes)) > 0;
}

bool Ring::has_room() const {
  return sent_ - peer_took_ < kSlots && (open_ & bit(sent_)) == 0 && rail_has_room(kSlotBytes);
}

void Ring::put(uint16_t kind, std::span<const std::byte> begin, std::span<const std::byte> rest) {
  const size_t bytes = begin.size() + rest.size();
  SLIME_CHECK(bytes <= kMostBytes && has_room());
  const uint32_t slot = sent_ % kSlots;
  std::byte* image = link_.memory().outbox() + offset_of(slot);
  const Header header{sent_, kind, static_cast<uint16_t>(bytes)};
  for (const auto part : {std::as_bytes(std::span(&header, 1)), begin, rest}) {
    if (!part.empty()) std::memcpy(image, part.data(), part.size());
    image += part.size();
  }
  refused_ &= ~bit(slot);
  unsaid_ &= ~bit(slot);
  ++sent_;
  submit(slot);
}

void Ring::move() {
  while (lost_ != 0 && rail_has_room(kSlotBytes)) {
    const auto slot = static_cast<uint32_t>(std::countr_zero(lost_));
    lost_ &= lost_ - 1;
    submit(slot);
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

void Ring::submit(uint32_t slot) {
  LinkRails& rails = link_.rails();
  const Header header = header_in(slot);
  const OutboxPiece piece{offset_of(slot), sizeof header + header.bytes};
  const size_t rail = rails.quickest_rail(piece.bytes);
  open_ |= bit(slot);
  rails.submit(rail, rails.write_of(piece, rail, control_immediate(place_.record, header.sequence)),
               this, slot);
  rails.hurry(rail);
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
    open_ &= ~bit(part);
  }
}

// A record that the peer took, by a count that has come since, is not written again.
void Ring::on_lost(uint32_t part) {
  if (part == kCount) {
    count_open_ = false;  // count_again() follows
  } else if (part == kRefusal) {
    if (refusal_ == Refusal::kSent) refusal_ = Refusal::kOwed;
  } else if (part >= kSeenSlots) {
    unsaid_ |= bit(part - kSeenSlots) & refused_;  // unless another record has the slot
  } else if (static_cast<int32_t>(header_in(part).sequence - peer_took_) < 0) {
    open_ &= ~bit(part);
  } else {
    lost_ |= bit(part);
  }
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

// The peer may write into its slot at any time, so the record is copied before it is checked.
Result<std::optional<Record>> Ring::look() {
  if ((here_ & bit(taken_)) == 0 || refusal_ != Refusal::kNone) return std::nullopt;
  std::memcpy(record_.data(), link_.memory().inbox() + offset_of(taken_ % kSlots), kSlotBytes);
  Header header;
  std::memcpy(&header, record_.data(), sizeof header);
  if (header.sequence != taken_ || header.bytes > kMostBytes) {
    (void)link_.context().fail_protocol("a record whose header is damaged");
    return fail(link_.context().failure());
  }
  return Record{header.kind, std::span(record_).subspan(sizeof header, header.bytes)};
}

void Ring::take() {
  SLIME_CHECK(here_ & bit(taken_));
  here_ &= ~bit(taken_);
  refusal_ = Refusal::kNone;
  ++taken_;
}

void Ring::refuse() {
  SLIME_CHECK((here_ & bit(taken_)) != 0 && refusal_ == Refusal::kNone);
  refusal_ = Refusal::kOwed;
}

}  // namespace slime
