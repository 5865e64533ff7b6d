#include "peer/records.h"

#include <bit>
#include <cstring>

#include "base/check.h"

namespace slime {
namespace {

constexpr ControlOp kRecord{1};  // value: its sequence number
constexpr ControlOp kTaken{3};   // value: how many records this end has taken
static_assert(is_of_user(kRecord) && is_of_user(kTaken));

}  // namespace

void Records::send(RecordKind kind, std::span<const std::byte> payload) {
  SLIME_CHECK(payload.size() <= kMostBytes);
  const Header header{0, static_cast<uint16_t>(kind), static_cast<uint16_t>(payload.size())};
  const auto begin = std::as_bytes(std::span(&header, 1));
  std::vector<std::byte>& record = waiting_.emplace_back(begin.begin(), begin.end());
  record.insert(record.end(), payload.begin(), payload.end());
  move();
}

void Records::move() {
  LinkRails& rails = link_.rails();
  if (rails.up_count() == 0) return;
  while (lost_ != 0) {
    const auto slot = static_cast<uint32_t>(std::countr_zero(lost_));
    lost_ &= lost_ - 1;
    submit(slot);
  }
  for (; !waiting_.empty() && has_slot(); waiting_.pop_front()) put(waiting_.front());
  if (owes_count()) submit_count();
}

bool Records::has_slot() const {
  const bool free = sent_ - peer_took_ < kSlots && (open_ & bit(sent_ % kSlots)) == 0;
  LinkRails& rails = link_.rails();
  return free && rails.room(rails.quickest_rail(kSlotBytes)) > 0;
}

void Records::put(std::span<const std::byte> record) {
  const uint32_t slot = sent_ % kSlots;
  std::byte* const image = link_.memory().outbox() + slot * kSlotBytes;
  std::memcpy(image, record.data(), record.size());
  std::memcpy(image + offsetof(Header, sequence), &sent_, sizeof sent_);
  ++sent_;
  submit(slot);
}

// The number of the record that is in this slot.
void Records::submit(uint32_t slot) {
  LinkRails& rails = link_.rails();
  Header header;
  const size_t offset = slot * kSlotBytes;
  std::memcpy(&header, link_.memory().outbox() + offset, sizeof header);
  const OutboxPiece piece{offset, sizeof header + header.bytes};
  const size_t rail = rails.quickest_rail(piece.bytes);
  open_ |= bit(slot);
  rails.submit(rail, rails.write_of(piece, rail, control_immediate(kRecord, header.sequence)), this,
               slot);
  rails.hurry(rail);
}

void Records::submit_count() {
  LinkRails& rails = link_.rails();
  const size_t rail = rails.quickest_rail(0);
  told_ = taken_;
  count_open_ = true;
  rails.submit(rail, rails.write_of({}, rail, control_immediate(kTaken, told_)), this, kCount);
}

void Records::on_done(uint32_t part) {
  if (part == kCount) {
    count_open_ = false;
  } else {
    SLIME_CHECK(open_ & bit(part));
    open_ &= ~bit(part);
  }
}

// A count that was lost is said again with a newer one. A record that the peer took, by a count
// that has come since, is not written again.
void Records::on_lost(uint32_t part) {
  if (part == kCount) {
    count_open_ = false;
    told_ = taken_ - kSlots / 2;
    return;
  }
  Header header;
  std::memcpy(&header, link_.memory().outbox() + part * kSlotBytes, sizeof header);
  if (static_cast<int32_t>(header.sequence - peer_took_) < 0) {
    open_ &= ~bit(part);
  } else {
    lost_ |= bit(part);
  }
}

Status Records::on_arrived(uint32_t immediate) {
  const uint32_t value = control_value(immediate);
  if (control_op(immediate) == kTaken) {
    const uint32_t count = widen(peer_took_, value, kControlValueMask);
    if (static_cast<int32_t>(count - peer_took_) < 0) return Status::kOk;  // an older one
    if (count - peer_took_ > sent_ - peer_took_) {
      return link_.context().fail_protocol("that it took records which were not sent");
    }
    peer_took_ = count;
    return Status::kOk;
  }
  if (control_op(immediate) != kRecord) {
    return link_.context().fail_protocol("a control work that has no meaning between engines");
  }
  const uint32_t number = widen(taken_, value, kControlValueMask);
  if (static_cast<int32_t>(number - taken_) < 0) return Status::kOk;  // it comes twice
  if (number - taken_ >= kSlots) return link_.context().fail_protocol("a record too early");
  here_ |= bit(number % kSlots);
  return Status::kOk;
}

// The peer may write into its slot at any time, so the record is copied before it is checked.
Result<std::optional<Record>> Records::next() {
  const uint32_t slot = taken_ % kSlots;
  if ((here_ & bit(slot)) == 0) return std::nullopt;
  std::memcpy(record_.data(), link_.memory().inbox() + slot * kSlotBytes, kSlotBytes);
  Header header;
  std::memcpy(&header, record_.data(), sizeof header);
  if (header.sequence != taken_ || header.bytes > kMostBytes) {
    (void)link_.context().fail_protocol("a record whose header is damaged");
    return fail(link_.context().failure());
  }
  here_ &= ~bit(slot);
  ++taken_;
  return Record{static_cast<RecordKind>(header.kind),
                std::span(record_).subspan(sizeof header, header.bytes)};
}

}  // namespace slime
