// The operations of a worker as one stream of chunks, a packet each.
//
// States of an operation: running, while chunks of it lack results (`left`); done. Operations are
// done in any order, but leave the queue from its head: a ticket below `head_` is done, and the
// place of ticket t is free for t + kMost once t has left. Invariant: head_ <= tail_ <= head_ +
// kMost, and the operation at head_ is running unless the queue is empty.
//
// Thread rules: one thread. Nothing is allocated.
#pragma once

#include <array>
#include <optional>

#include "base/error.h"
#include "collnet/payload/payload.h"

namespace slime {

struct Operation {
  const void* send = nullptr;
  void* receive = nullptr;  // may be `send`
  uint64_t count = 0;       // elements
  DataType type = DataType::kInt32;
  ReduceOp op = ReduceOp::kSum;
};

// The part of an operation that one packet carries. Valid until the operation is done.
struct Chunk {
  uint64_t number = 0;    // in the stream
  uint64_t ticket = 0;    // of its operation
  uint64_t siblings = 0;  // chunks of that operation
  const Payload* payload = nullptr;
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  uint32_t count = 0;  // elements
};

class OperationQueue {
 public:
  static constexpr uint32_t kMost = 64;  // operations outstanding

  uint64_t room() const { return kMost - (tail_ - head_); }
  uint64_t next_chunk() const { return next_chunk_; }  // of the operation that comes next
  // There must be room. Answers the ticket; tickets count up from 0.
  uint64_t push(const Operation& operation, const Payload& payload);
  bool done(uint64_t ticket) const {
    return ticket < head_ || operations_[ticket % kMost].left == 0;
  }
  // Nothing: the operation has not been started yet.
  std::optional<Chunk> chunk(uint64_t number) const;
  // The result of this chunk is in its place.
  void complete(const Chunk& chunk);

 private:
  struct Running {
    Operation operation;
    Payload payload;
    uint64_t first_chunk = 0;
    uint64_t chunks = 0;
    uint64_t left = 0;  // chunks without a result
  };
  void retire();

  std::array<Running, kMost> operations_;
  uint64_t head_ = 0, tail_ = 0;  // tickets: oldest that is not done, next
  uint64_t next_chunk_ = 0;
};

}  // namespace slime
