// The receiving half of a channel: bytes of a socket become writes into registered memory, and
// answers to reads. Requests and refusals of the peer go to the parts of the channel that they are
// about.
//
// Payload goes from the socket straight to its place. Headers, and small payloads behind them,
// come through a small staging buffer, so that one call fetches many small frames; the tail of a
// large payload fetches what follows it in the same call. Payloads of a list go to their places
// together, by one call.
//
// States: between two frames, perhaps of a list; or a frame is open: its header is read, and
// remaining_ bytes of its payload are still to come, which may be thrown away (refused_). After a
// fault the reader must not be called again. Invariant: nothing is written before magic, type,
// length, key, right and bounds are right. One thread; nothing is allocated after construction, but
// for the first list.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transports/rail.h"
#include "transports/region_table.h"
#include "transports/tcp/frames/answers.h"
#include "transports/tcp/frames/frame_list.h"
#include "transports/tcp/frames/reads.h"
#include "transports/tcp/frames/send_queue.h"
#include "transports/tcp/frames/wire.h"

namespace slime::tcp {

// Why a reader gave up; the channel makes a sentence of it.
struct ReadFault {
  enum class Kind : uint8_t {
    kNone,
    kEnded,            // the peer closed the connection
    kSocket,           // errno in `code`
    kNotAFrame,        // wrong magic, type, flags or length
    kNotOfOurs,        // an answer or a refusal of a work that is not outstanding
    kTooLong,          // longer than a work may be
    kTooManyReads,     // outstanding
    kTooManyRefusals,  // of works of the peer
    kUnknownKey,       // never registered, or deregistered since
    kOutOfBounds,      // not inside the registered range
    kNoRight,          // the range is not registered for writes of peers
  };
  Kind kind = Kind::kNone;
  int code = 0;
};

class FrameReader {
 public:
  // One poll stops at the first of these: to be fair to other channels of the thread, and because
  // the socket is locked during a call, so that a long one makes the peer wait for its window.
  static constexpr size_t kMaxBytes = size_t{256} << 10;
  static constexpr size_t kMaxDone = 64;
  // What is staged is copied once more. So behind a large payload, which tends to be followed by
  // another, only a little is staged: its header and the beginning.
  static constexpr size_t kStagingBytes = 32 << 10;  // at most
  static constexpr size_t kLargePayload = 64 << 10;
  static constexpr size_t kStagedBehindLarge = 1 << 10;
  static constexpr uint64_t kSlowListNs = 200'000;

  FrameReader(const RegionTable& regions, uint64_t max_message_bytes, SendQueue& queue,
              Reads& reads, Answers& answers)
      : regions_(regions),
        max_message_bytes_(max_message_bytes),
        queue_(queue),
        reads_(reads),
        answers_(answers),
        staging_(staging_for(queue.depth())) {}

  // Takes what the socket has. Appends a kArrived for each write with an immediate that is complete
  // in memory, and a kSent or kRefused for each read of ours that has ended. False: see fault();
  // what was appended before it is valid, and read() must not be called again.
  bool read(int fd, std::span<Done> done, size_t* count);

  bool drained() const { return drained_; }  // the last read() left nothing in the socket
  // Without another byte from the socket, read() may report something.
  bool holds_more() const {
    if (open_) return remaining_ == 0 || staged() > 0;
    return staged() >= kFrameHeaderBytes || list_.ready();
  }
  bool mid_frame() const { return open_ || begin_ != end_ || !list_.empty(); }
  bool mid_list() const { return !list_.empty() || (open_ && listed_); }
  uint32_t arrived() const { return arrived_; }  // writes complete so far, mod 2^32
  // arrived() at the last that wants an acknowledgement. The writes of a list want theirs together.
  // If it takes longer than kSlowListNs, what has come wants it whenever the socket is empty: the
  // sender measures the rail by that.
  uint32_t awaited() const { return mid_list() ? awaited_before_list_ : awaited_; }
  uint32_t peer_ack() const { return peer_ack_; }
  // Of the frames that are complete so far and in memory.
  uint32_t placed_writes() const { return placed_writes_; }
  uint64_t placed_bytes() const { return placed_bytes_; }
  const ReadFault& fault() const { return fault_; }
  const FrameHeader& header() const { return header_; }  // of the latest frame

 private:
  static size_t staging_for(uint32_t depth) {
    return std::clamp<size_t>(depth * 128, 4 << 10, kStagingBytes);
  }
  size_t staged() const { return end_ - begin_; }
  bool consume(std::span<Done> done, size_t* count);
  bool next_frame();
  bool fill_list();
  void look_at_slow_list();
  bool open_frame();
  bool open_write();
  bool open_answer();
  bool open_end_of_read();
  Read* find_read();
  bool place_staged();
  void copy_staged(size_t bytes);
  bool complete(std::span<Done> done, size_t* count);
  bool complete_write(std::span<Done> done, size_t* count);
  void complete_answer(std::span<Done> done, size_t* count);
  // Bytes moved; -1: see fault_.
  ssize_t fetch_header(int fd);
  ssize_t fetch_payload(int fd, size_t budget);
  ssize_t fetch_listed(int fd, size_t budget);
  ssize_t check_received(ssize_t result, size_t asked);
  ssize_t throw_away(int fd, size_t bytes);
  enum class Verdict : uint8_t { kPlace, kThrowAway, kFault };
  // What becomes of the open frame's payload.
  Verdict judge(const RegionTable::Pin& pin);
  RegionTable::Pin pin() const { return {regions_, key_, address_, header_.length, right_}; }
  std::byte* target() const;  // where the open frame's next byte goes
  bool is(FrameType type) const { return header_.type == static_cast<uint8_t>(type); }
  bool stop(ReadFault::Kind kind, int code = 0);

  const RegionTable& regions_;
  const uint64_t max_message_bytes_;
  SendQueue& queue_;
  Reads& reads_;
  Answers& answers_;

  FrameHeader header_;
  uint64_t key_ = 0, address_ = 0;  // of the place of the open frame's payload
  uint8_t right_ = 0;               // that the peer needs there
  bool refused_ = false;            // its payload is thrown away
  uint64_t remaining_ = 0;          // bytes of the open frame's payload that are still to come
  bool open_ = false;               // header_ is of a frame that is not complete yet
  bool drained_ = false;
  bool after_large_ =
      false;  // the last frame with a payload had a large one, or was of a large list
  FrameList list_;
  bool listed_ = false;  // the latest frame came from it
  uint32_t arrived_ = 0;
  uint32_t awaited_ = 0, awaited_before_list_ = 0;
  uint64_t list_ns_ = 0;  // when the list began, or was slow last
  uint32_t peer_ack_ = 0;
  uint32_t placed_writes_ = 0;
  uint64_t placed_bytes_ = 0;
  ReadFault fault_;

  size_t begin_ = 0;  // staging_[begin_, end_) is not consumed yet
  size_t end_ = 0;
  std::vector<std::byte> staging_;
};

// Copies so that whoever polls the destination sees 8-byte words whole and in ascending order,
// which NCCL's LL protocol relies on (data word and flag word of a line; NCCL, prims_ll.h).
// memcpy promises no order.
void copy_ascending(std::byte* to, const std::byte* from, size_t bytes);

}  // namespace slime::tcp
