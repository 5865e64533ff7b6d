// The records that a sender and a receiver write into each other's inbox, and their offsets there.
// Integers are in host order: both ends compare byte order and version when they connect.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "message/comm.h"
#include "message/immediate.h"

namespace slime {

inline constexpr uint32_t kEagerBuffers = 32;  // eager messages that may wait at the receiver
// After so many eager messages in a row the receiver holds CTS back (cts_outbox.cc), and the sender
// may ask for one (sender.cc). NCCL keeps 8 receives posted.
inline constexpr uint32_t kEagerStreak = 8;
// CTS records. There are twice as many as receives: eager messages may complete a receive before
// the sender has read its CTS, and the record must stay until then.
inline constexpr uint32_t kCtsEntries = 2 * kMaxRequests;

// One receive of a group, in a CTS. In memory, its keys follow it, one for each channel.
struct CtsReceive {
  uint64_t address = 0;
  uint64_t offset = 0;  // of the address, from the beginning of the range that the keys are for
  uint64_t capacity = 0;
  int32_t tag = 0;
  uint32_t ordinal = 0;  // which receive of this tag, counted from 0 over the life of the comm
};

struct CtsHeader {
  uint32_t sequence = 0;
  uint16_t entry = 0;
  uint16_t generation = 0;
  uint32_t count = 0;           // receives in the group
  uint32_t eager_consumed = 0;  // credits for eager messages, returned on the way
};

struct EagerHeader {
  uint32_t index = 0;
  uint32_t length = 0;  // payload that follows; none does where it is too long for its receive
  int32_t tag = 0;
  uint32_t ordinal = 0;      // which message of this tag
  uint32_t cts_seen = 0;     // number of CTS that the sender had read when it sent this
  uint32_t length_high = 0;  // upper half of a length without its payload

  uint64_t bytes() const { return uint64_t{length_high} << 32 | length; }
};

// The value of kTooLong: which buffer the message is in, and the bytes that its receive takes. They
// are fewer than an eager message has, so they need 16 bits.
struct Refusal {
  uint32_t buffer = 0;
  uint32_t capacity = 0;

  constexpr uint32_t pack() const { return buffer << 16 | capacity; }
  static constexpr Refusal unpack(uint32_t value) {
    return {(value >> 16) % kEagerBuffers, value & 0xffff};
  }
};

// Of a send that is longer than its receive. The ranks disagree, and each end reports it.
inline Error size_error(uint64_t sent, int tag, uint64_t capacity) {
  return make_error(
      Status::kConfig, 0,
      "a send of %llu bytes (tag %d) meets a receive of %llu bytes; the ranks disagree on a size",
      static_cast<unsigned long long>(sent), tag, static_cast<unsigned long long>(capacity));
}

// The stripes that had arrived at the receiver when it fenced a rail. The sender repeats the
// others.
struct FenceRecord {
  struct Entry {
    uint32_t active = 0;                  // the entry has a receive that was announced by CTS
    uint32_t sequence = 0;                // of that CTS
    uint64_t arrived[kMaxReceives] = {};  // bit per stripe; all ones: complete
  };
  uint32_t rail = 0;
  uint32_t epoch = 0;     // the life of the rail that has ended
  uint32_t next_cts = 0;  // CTS from this sequence on came after the fence: nothing has arrived
  uint32_t reserved = 0;
  Entry entries[kCtsEntries];
};

static_assert(kCtsEntries == kEntryMask + 1);
// Records are made in their place, each behind the one before.
static_assert(sizeof(CtsHeader) % alignof(CtsReceive) == 0 &&
              sizeof(CtsReceive) % alignof(uint64_t) == 0);

constexpr size_t cts_receive_bytes(size_t channels) {
  return sizeof(CtsReceive) + channels * sizeof(uint64_t);
}
constexpr size_t cts_entry_bytes(size_t channels) {
  return sizeof(CtsHeader) + kMaxReceives * cts_receive_bytes(channels);
}
constexpr size_t cts_ring_bytes(size_t channels) { return kCtsEntries * cts_entry_bytes(channels); }

// Layout of the sender's inbox and the receiver's outbox: CTS ring, fence records.
constexpr size_t fence_offset(size_t channels, size_t rail) {
  return cts_ring_bytes(channels) + rail * sizeof(FenceRecord);
}
constexpr size_t cts_inbox_bytes(size_t channels) { return fence_offset(channels, channels); }

// Layout of the receiver's inbox and the sender's outbox: the eager ring. Buffers start at
// multiples of 64 bytes.
constexpr size_t eager_buffer_bytes(size_t eager_max) {
  return (sizeof(EagerHeader) + eager_max + 63) & ~size_t{63};
}
constexpr size_t eager_inbox_bytes(size_t eager_max) {
  return kEagerBuffers * eager_buffer_bytes(eager_max);
}

}  // namespace slime
