// Short records from one end of a link to the other: in order and exactly once, whatever rails die.
// A link between engines has several rings each way (peer/rings.h), so that records of one kind
// that are not taken do not stop those of another.
//
// A record is written into slots of a ring at the peer, one or several side by side. Slots have
// numbers that count up; modulo kSlots they name the place. A record has the number of its first
// slot. One that does not fit before the end of the ring lies at its beginning, and a filler, which
// is a record without a meaning, has the slots before. The peer takes records in the order of their
// numbers, so one that comes twice, after its rail has died, is seen to have been taken. The peer
// says up to which number it has taken them (a count).
//
// A record may be refused. Works overtake each other, so the sender says that it has seen the
// refusal, and only then the record counts as taken.
//
// States of a slot at the sender
//   free   the peer has taken its record, and no work is open on it
//   open   a work carries the record, or will: its rail died, and no other one has room
//   sent   the work is done
// What makes reuse safe: works of records are confirmed, and a second copy is sent only when both
// ends have fenced the rail of the first. So no copy is on its way when the slot is free.
//
// Memory: its slots, at both ends, and a copy of one record. Thread: that of the link.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>

#include "link/link.h"

namespace slime {

struct Record {
  uint16_t kind = 0;
  std::span<const std::byte> payload;  // valid until the next look()
};

class Ring final : private WorkOwner {
 public:
  static constexpr uint32_t kSlots = 32;
  static constexpr size_t kSlotBytes = 320;
  static constexpr uint32_t kMostSlots = 16;                         // of a record
  static constexpr size_t kOneSlotBytes = kSlotBytes - 8;            // of a payload in one slot
  static constexpr size_t kMostBytes = kMostSlots * kSlotBytes - 8;  // of any payload
  static constexpr size_t kBytes = kSlots * kSlotBytes;

  // Operations that rings share; value: the ring, and the number of the record.
  static constexpr ControlOp kRefused{7};
  static constexpr ControlOp kRefusalSeen{9};
  static uint32_t index_in(uint32_t value) { return value >> kNumberBits; }

  // Which of a link's rings it is, from 0 on, and its own operations. It lies behind those before
  // it in the owner's part of the link's memory.
  struct Place {
    uint32_t index = 0;
    ControlOp record;  // value: the number of its first slot
    ControlOp taken;   // value: how many slots this end has taken
    // The sender waits for each count. Otherwise one is sent for half a ring, and records have one
    // slot.
    bool prompt = true;
  };

  uint32_t index() const { return place_.index; }

  // Of a record: its first slot, and the one behind its last.
  struct Numbers {
    uint32_t first = 0, end = 0;
  };

  Ring(Link& link, const Place& place) : link_(link), place_(place) {}

  // The sender's end. The payload is the parts, one after the other, with so many bytes in all; the
  // kind is not 0. On this rail, or on the quickest one.
  bool has_room(size_t bytes, size_t rail = kNoRail) const;
  using Parts = std::initializer_list<std::span<const std::byte>>;
  Numbers put(uint16_t kind, Parts parts, size_t rail = kNoRail);
  const LinkRails& rails() const { return link_.rails(); }
  bool was_taken(const Numbers& record) const {
    return static_cast<int32_t>(peer_took_ - record.end) >= 0;
  }
  // Whether the peer has refused this one. Ask before another has its slots.
  bool was_refused(const Numbers& record) const { return (refused_ & bit(record.first)) != 0; }

  // What an end has of the other's records: slots that it has taken, and the first slots, a bit
  // each, of records that are here.
  struct State {
    uint32_t taken = 0, here = 0;
  };
  State state() const { return {taken_, here_}; }
  // The peer has it, or had when it was in this state.
  bool has_got(const Numbers& record, const State& peer) const {
    return was_taken(record) ||
           (record.first - peer.taken < kSlots && (peer.here & bit(record.first)) != 0);
  }
  // The rail that carried it has died, and both ends have fenced it; no other one has it yet.
  bool is_lost(const Numbers& record) const { return (lost_ & bit(record.first)) != 0; }
  // Makes one that is lost, and that the peer has not got, another kind.
  void change_lost(const Numbers& record, uint16_t kind);

  // The receiver's end: the next record, if it is here and was not refused. It stays the next one
  // until take(); after refuse(), until refusal_seen(), which take() follows.
  Result<std::optional<Record>> look();
  void take();
  void refuse();
  bool refusal_seen() const { return refusal_ == Refusal::kSeen; }
  uint32_t taken() const { return taken_; }  // slots
  Status on_count(uint32_t count);           // the peer has taken so many

  // Submits what waits, as far as rails have room.
  void move();
  // Both ends have fenced a rail: the owner of the link says so. A count that was on it may not
  // have come.
  void count_again() { told_ = taken_ - kSlots / 2; }
  bool takes(ControlOp op, uint32_t value) const {
    if (op == kRefused || op == kRefusalSeen) return index_in(value) == place_.index;
    return op == place_.record || op == place_.taken;
  }
  Status on_arrived(ControlOp op, uint32_t value);  // an arrival of the link that this ring takes

 private:
  static constexpr uint32_t kNumberBits = 23, kNumberMask = (1 << kNumberBits) - 1;
  enum class Refusal : uint8_t { kNone, kOwed, kSent, kSeen };
  // Parts of works, beside slots.
  static constexpr uint32_t kCount = kSlots, kRefusal = kSlots + 1, kSeenSlots = kSlots + 2;
  static_assert(kSlots == 32, "a bit for each in 32 bits");

  struct Header {
    uint32_t sequence = 0;
    uint16_t kind = 0, bytes = 0;
  };
  static_assert(sizeof(Header) + kOneSlotBytes == kSlotBytes);
  static constexpr uint16_t kFiller = 0;  // a kind; only the header of such a record is written

  void on_done(uint32_t part) override;
  void on_lost(uint32_t part) override;
  void close(uint32_t slot);
  Header header_in(uint32_t slot) const;
  bool slots_are_free(size_t bytes) const;
  size_t rail_for(size_t bytes, size_t wanted = kNoRail) const;
  bool rail_has_room(size_t bytes, uint32_t works = 1, size_t wanted = kNoRail) const;
  uint32_t left_over(uint32_t slots) const;
  Numbers begin(uint16_t kind, size_t bytes);
  OutboxPiece piece_of(uint32_t slot) const;
  size_t submit(uint32_t slot, size_t wanted = kNoRail);
  size_t offset_of(uint32_t slot) const { return place_.index * kBytes + slot * kSlotBytes; }
  void submit_control(ControlOp op, uint32_t value, uint32_t part, bool unconfirmed = false);
  void submit_refusals();
  uint32_t named(uint32_t number) const {
    return place_.index << kNumberBits | (number & kNumberMask);
  }
  bool owes_count() const;
  Status on_record(uint32_t number);
  Status on_refusal(uint32_t number);
  void on_refusal_seen(uint32_t number);
  static uint32_t bit(uint32_t number) { return uint32_t{1} << number % kSlots; }
  // Slots side by side; kMostSlots at most.
  static uint32_t bits(uint32_t first, uint32_t slots) {
    return ((uint32_t{1} << slots) - 1) << first % kSlots;
  }
  static uint32_t slots_of(size_t bytes) {  // of a payload
    return static_cast<uint32_t>((sizeof(Header) + bytes + kSlotBytes - 1) / kSlotBytes);
  }

  Link& link_;
  const Place place_;
  // Ours.
  uint32_t sent_ = 0;       // slots, in put()
  uint32_t peer_took_ = 0;  // of these
  uint32_t open_ = 0;       // slots, a bit each
  uint32_t lost_ = 0;       // records, the bit of the first slot of each
  uint32_t refused_ = 0;    // the same
  uint32_t unsaid_ = 0;     // the same: refusals that this end has seen, and has to say so
  // The peer's.
  uint32_t here_ = 0;        // records that have not been taken, the bit of the first slot of each
  uint32_t taken_ = 0;       // how many slots have been
  uint32_t told_ = 0;        // how many the peer was told of
  uint32_t next_slots_ = 0;  // of the next record, by look()
  bool count_open_ = false;
  Refusal refusal_ = Refusal::kNone;               // of the next record
  std::array<std::byte, kMostBytes> record_ = {};  // of look()
};

}  // namespace slime
