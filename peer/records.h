// What the engines at both ends of a link tell each other: short records, in order and exactly
// once, whatever rails die.
//
// A record is written into a slot of a ring at the peer; its sequence number, modulo kSlots, names
// the slot. The peer takes records in the order of their numbers, so one that comes twice, after
// its rail has died, is seen to have been taken. The peer says how many it has taken (kTaken).
//
// States of a slot at the sender
//   free   the peer has taken its record, and no work is open on it
//   open   a work carries it, or will: its rail died, and no other one is up
//   sent   the work is done
// What makes reuse safe: works are confirmed, and a second copy is sent only when both ends have
// fenced the rail of the first. So no copy is on its way when the slot is free.
//
// Memory: the two rings, and what the user has sent and the ring has no slot for yet. Thread: that
// of the link.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "link/link.h"

namespace slime {

enum class RecordKind : uint16_t {
  kWantKeys = 1,  // peer/keys.h
  kKeys,
};

struct Record {
  RecordKind kind = {};
  std::span<const std::byte> payload;  // valid until the next call of next()
};

class Records final : private WorkOwner {
 public:
  static constexpr uint32_t kSlots = 32;
  static constexpr size_t kSlotBytes = 320;
  static constexpr size_t kMostBytes = kSlotBytes - 8;  // of a payload
  // At both ends. They lie at the beginning of the owner's part of the link's memory.
  static constexpr LinkMemoryBytes kMemory = {kSlots * kSlotBytes, kSlots* kSlotBytes};

  explicit Records(Link& link) : link_(link) {}

  void send(RecordKind kind, std::span<const std::byte> payload);
  // Submits what waits, as far as there are slots and rails have room.
  void move();
  // So many records wait for slots that the caller of next() must not answer further ones yet.
  bool congested() const { return waiting_.size() >= kSlots; }

  // An arrival of the link (LinkEnd).
  Status on_arrived(uint32_t immediate);
  // The next record of the peer, if it is here.
  Result<std::optional<Record>> next();

 private:
  static constexpr uint32_t kCount = kSlots;  // the part of the work that says kTaken
  static_assert(kSlots == 32, "a bit for each in 32 bits");

  struct Header {
    uint32_t sequence = 0;
    uint16_t kind = 0, bytes = 0;
  };
  static_assert(sizeof(Header) + kMostBytes == kSlotBytes);

  void on_done(uint32_t part) override;
  void on_lost(uint32_t part) override;
  bool has_slot() const;
  void put(std::span<const std::byte> record);
  void submit(uint32_t slot);
  void submit_count();
  bool owes_count() const { return !count_open_ && taken_ - told_ >= kSlots / 2; }
  static uint32_t bit(uint32_t slot) { return uint32_t{1} << slot; }

  Link& link_;
  // Ours.
  std::deque<std::vector<std::byte>> waiting_;  // header and payload; the header gets its number
  uint32_t sent_ = 0;                           // in put()
  uint32_t peer_took_ = 0;
  uint32_t open_ = 0, lost_ = 0;  // slots, a bit each
  // The peer's.
  uint32_t here_ = 0;   // slots with records that have not been taken, a bit each
  uint32_t taken_ = 0;  // how many have been
  uint32_t told_ = 0;   // how many the peer was told of
  bool count_open_ = false;
  std::array<std::byte, kSlotBytes> record_ = {};  // of next()
};

}  // namespace slime
