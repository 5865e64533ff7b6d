// One contiguous piece of memory on its way to the peer, or from it: cut into stripes, each of
// which is a work of some rail, and is submitted again over another rail when its own dies.
//
// States: done while no bit of open_ is set. Each bit of it is a stripe that is not known to have
// arrived. Such a stripe is unsent (a bit of unsent_ too: on no rail), or on a rail until
// on_done(), on_lost() or on_refused(). Once a stripe was refused, none is sent any more, and the
// transfer is done when those on rails have ended. TransferQueue::start() begins the next use,
// which is safe when the last one is done: no work names it any more. It must not move in memory
// before.
//
// Thread: that of the link.
#pragma once

#include <cstddef>
#include <cstdint>

#include "devices/memory.h"
#include "link/rail/work_slots.h"
#include "link/stripes.h"

namespace slime {

class TransferQueue;

// What a transfer moves. Stripe k of one with immediates has `immediate + k * immediate_step`.
struct TransferPiece {
  const std::byte* local = nullptr;
  const MemoryRegion* region = nullptr;  // of `local`; of 0 bytes: nullptr
  uint64_t bytes = 0;
  uint64_t remote_address = 0, remote_offset = 0;  // see Work
  // For each rail of the link; valid until the transfer is done.
  const uint64_t* remote_keys = nullptr;
  uint32_t immediate = 0, immediate_step = 0;
  Opcode opcode = Opcode::kWriteWithImmediate;  // every rail of the link has it
  // Otherwise a refusal fails the link. A rail that does not go on after one (RailCaps) dies of it
  // and returns; each refused stripe may end another rail, so such a link needs a lifeline.
  bool may_be_refused = false;
};

class Transfer : public WorkOwner {
 public:
  bool done() const { return open_ == 0; }
  // The peer's rail refused a part of it; other parts may have been moved.
  bool refused() const { return refused_; }
  const TransferPiece& piece() const { return piece_; }
  // Both ends have fenced a rail, and the peer had these stripes (a bit each): they are not sent
  // again if they are lost now.
  void note_arrived(uint64_t stripes) { arrived_ = stripes; }

 protected:
  Transfer() = default;
  ~Transfer() = default;

  // A stripe goes over this rail now; `again`: it was lost on another one. Not called for writes
  // with immediates, which NCCL's messages are made of.
  virtual void on_placed(size_t /*rail*/, uint64_t /*bytes*/, bool /*again*/) {}
  // It is done now. The last that is called of a use; start() may follow, but not from here.
  virtual void on_end() {}

 private:
  friend class TransferQueue;
  void on_done(uint32_t stripe) final;
  void on_lost(uint32_t stripe) final;
  bool on_refused(uint32_t stripe) final;

  TransferQueue* queue_ = nullptr;
  Transfer* next_ = nullptr;  // in the queue
  TransferPiece piece_;
  StripePlan plan_;
  uint64_t open_ = 0;
  uint64_t unsent_ = 0;
  uint64_t lost_ = 0;     // of the unsent ones: were on a rail that died
  uint64_t arrived_ = 0;  // see note_arrived()
  bool refused_ = false;
};

}  // namespace slime
