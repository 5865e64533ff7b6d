// Short records from one end of a link to the other: in order and exactly once, whatever rails die.
// A link between engines has several rings each way (peer/rings.h), so that records of one kind
// that are not taken do not stop those of another.
//
// A record is written into a slot of a ring at the peer; its sequence number, modulo kSlots, names
// the slot. The peer takes records in the order of their numbers, so one that comes twice, after
// its rail has died, is seen to have been taken. The peer says how many it has taken (a count).
//
// A record may be refused. Works overtake each other, so the sender says that it has seen the
// refusal, and only then the record counts as taken.
//
// States of a slot at the sender
//   free   the peer has taken its record, and no work is open on it
//   open   a work carries it, or will: its rail died, and no other one has room
//   sent   the work is done
// What makes reuse safe: works of records are confirmed, and a second copy is sent only when both
// ends have fenced the rail of the first. So no copy is on its way when the slot is free.
//
// Memory: its slots, at both ends. Thread: that of the link.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
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
  static constexpr size_t kMostBytes = kSlotBytes - 8;  // of a payload
  static constexpr size_t kBytes = kSlots * kSlotBytes;

  // Operations that rings share; value: the ring, and the number of the record.
  static constexpr ControlOp kRefused{7};
  static constexpr ControlOp kRefusalSeen{9};
  static uint32_t index_in(uint32_t value) { return value >> kNumberBits; }

  // Which of a link's rings it is, from 0 on, and its own operations. It lies behind those before
  // it in the owner's part of the link's memory.
  struct Place {
    uint32_t index = 0;
    ControlOp record;  // value: its sequence number
    ControlOp taken;   // value: how many records this end has taken
    // The sender waits for each count. Otherwise one is sent for half a ring.
    bool prompt = true;
  };

  Ring(Link& link, const Place& place) : link_(link), place_(place) {}

  // The sender's end. The payload is the two parts, one after the other.
  bool has_room() const;
  void put(uint16_t kind, std::span<const std::byte> begin, std::span<const std::byte> rest = {});
  uint32_t peer_took() const { return peer_took_; }  // records; later ones are not taken yet
  // Whether the peer has refused this one. Ask before another has its slot.
  bool was_refused(uint32_t number) const { return (refused_ & bit(number)) != 0; }

  // The receiver's end: the next record, if it is here and was not refused. It stays the next one
  // until take(); after refuse(), until refusal_seen(), which take() follows.
  Result<std::optional<Record>> look();
  void take();
  void refuse();
  bool refusal_seen() const { return refusal_ == Refusal::kSeen; }

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
  static_assert(sizeof(Header) + kMostBytes == kSlotBytes);

  void on_done(uint32_t part) override;
  void on_lost(uint32_t part) override;
  Header header_in(uint32_t slot) const;
  bool rail_has_room(size_t bytes) const;
  void submit(uint32_t slot);
  size_t offset_of(uint32_t slot) const { return place_.index * kBytes + slot * kSlotBytes; }
  void submit_control(ControlOp op, uint32_t value, uint32_t part, bool unconfirmed = false);
  void submit_refusals();
  uint32_t named(uint32_t number) const {
    return place_.index << kNumberBits | (number & kNumberMask);
  }
  bool owes_count() const;
  Status on_record(uint32_t number);
  Status on_count(uint32_t count);
  Status on_refusal(uint32_t number);
  void on_refusal_seen(uint32_t number);
  static uint32_t bit(uint32_t number) { return uint32_t{1} << number % kSlots; }

  Link& link_;
  const Place place_;
  // Ours.
  uint32_t sent_ = 0;  // in put()
  uint32_t peer_took_ = 0;
  uint32_t open_ = 0, lost_ = 0;  // slots, a bit each
  uint32_t refused_ = 0;          // the same
  uint32_t unsaid_ = 0;           // the same: refusals that this end has seen, and has to say so
  // The peer's.
  uint32_t here_ = 0;   // slots with records that have not been taken, a bit each
  uint32_t taken_ = 0;  // how many have been
  uint32_t told_ = 0;   // how many the peer was told of
  bool count_open_ = false;
  Refusal refusal_ = Refusal::kNone;               // of the next record
  std::array<std::byte, kSlotBytes> record_ = {};  // of look()
};

}  // namespace slime
