// The receiving half of a channel: bytes of a socket become works in registered memory.
//
// Payload goes from the socket straight to its place. Headers, and small payloads behind them,
// come through a small staging buffer, so that one call fetches many small frames; the tail of a
// large payload fetches what follows it in the same call.
//
// States: between two frames; or a frame is open: its header is read, and remaining_ bytes of its
// payload are still to come. After a fault the reader must not be called again. Invariant: nothing
// is written before magic, type, length, key and bounds are right. One thread; nothing is allocated
// after construction.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "transports/rail.h"
#include "transports/region_table.h"
#include "transports/tcp/wire.h"

namespace slime::tcp {

// Why a reader gave up; the channel makes a sentence of it.
struct ReadFault {
  enum class Kind : uint8_t {
    kNone,
    kEnded,        // the peer closed the connection
    kSocket,       // errno in `code`
    kNotAFrame,    // wrong magic, type or flags
    kTooLong,      // longer than a work may be
    kUnknownKey,   // never registered, or deregistered since
    kOutOfBounds,  // not inside the registered range
  };
  Kind kind = Kind::kNone;
  int code = 0;
};

class FrameReader {
 public:
  // One poll stops at the first of these: to be fair to other channels of the thread, and because
  // the socket is locked during a call, so that a long one makes the peer wait for its window.
  static constexpr size_t kMaxBytes = size_t{256} << 10;
  static constexpr size_t kMaxArrivals = 64;
  // What is staged is copied once more. So behind a large payload, which tends to be followed by
  // another, only a little is staged: its header and the beginning.
  static constexpr size_t kStagingBytes = 32 << 10;
  static constexpr size_t kLargePayload = 64 << 10;
  static constexpr size_t kStagedBehindLarge = 1 << 10;

  FrameReader(const RegionTable& regions, uint64_t max_message_bytes)
      : regions_(regions), max_message_bytes_(max_message_bytes) {}

  // Takes what the socket has and appends a Done per work that is complete in memory. False: see
  // fault(); works that were appended before it are valid. Never call again then.
  bool read(int fd, std::span<Done> done, size_t* count);

  bool drained() const { return drained_; }  // the last read() left nothing in the socket
  bool mid_frame() const { return open_ || begin_ != end_; }
  uint32_t arrived() const { return arrived_; }  // works reported so far, mod 2^32
  uint32_t awaited() const { return awaited_; }  // arrived() at the last that wants an ack
  uint32_t peer_ack() const { return peer_ack_; }
  uint64_t bytes() const { return bytes_; }  // of payload, in works reported so far
  const ReadFault& fault() const { return fault_; }
  const FrameHeader& header() const { return header_; }  // of the latest frame

 private:
  size_t staged() const { return end_ - begin_; }
  bool consume(std::span<Done> done, size_t* count);
  bool open_frame();
  bool place_staged();
  Done complete();
  // Bytes moved; -1: see fault_.
  ssize_t fetch_header(int fd);
  ssize_t fetch_payload(int fd, size_t budget);
  ssize_t check_received(ssize_t result, size_t asked);
  bool granted(const RegionTable::Pin& pin);
  std::byte* target() const;  // where the open frame's next byte goes
  bool stop(ReadFault::Kind kind, int code = 0);

  const RegionTable& regions_;
  const uint64_t max_message_bytes_;

  FrameHeader header_;
  uint64_t remaining_ = 0;  // bytes of the open frame's payload that are still to come
  bool open_ = false;       // header_ is of a frame that is not complete yet
  bool drained_ = false;
  uint32_t arrived_ = 0;
  uint32_t awaited_ = 0;
  uint32_t peer_ack_ = 0;
  uint64_t bytes_ = 0;
  ReadFault fault_;

  size_t begin_ = 0;  // staging_[begin_, end_) is not consumed yet
  size_t end_ = 0;
  alignas(64) std::array<std::byte, kStagingBytes> staging_;
};

// Copies so that whoever polls the destination sees 8-byte words whole and in ascending order,
// which NCCL's LL protocol relies on (data word and flag word of a line; NCCL, prims_ll.h).
// memcpy promises no order.
void copy_ascending(std::byte* to, const std::byte* from, size_t bytes);

}  // namespace slime::tcp
