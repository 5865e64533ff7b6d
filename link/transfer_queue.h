// Places the stripes of a link's transfers on its rails. A stripe waits here until a rail has room
// for it. Older transfers go first, because their user waits for the oldest. docs/striping.md has
// the rules.
//
// Invariants: a transfer with unsent stripes is in the queue, once, and waiting_bytes_ is the sum
// of the bytes of unsent stripes. Thread: that of the link.
#pragma once

#include <cstdint>

#include "link/rail_scheduler.h"
#include "link/transfer.h"

namespace slime {

class TransferQueue {
 public:
  TransferQueue(LinkRails& rails, RailScheduler& scheduler)
      : rails_(rails), scheduler_(scheduler) {}

  // The stripes of so many bytes, for the rails that are up now; StripePlan::stripes is 0 if they
  // would be more than kMaxStripes.
  StripePlan plan(uint64_t bytes) const {
    return plan_stripes(bytes, static_cast<uint32_t>(rails_.up_count()),
                        scheduler_.stripe_limits());
  }
  // `transfer` is done with its last use. Its stripes may go over any rail, whatever the plan was
  // made for. Inlined, so that the piece is made in its place.
  void start(Transfer& transfer, const TransferPiece& piece, const StripePlan& plan) {
    SLIME_CHECK(transfer.done() && plan.stripes >= 1 && plan.stripes <= kMaxStripes);
    transfer.queue_ = this;
    transfer.piece_ = piece;
    transfer.plan_ = plan;
    transfer.open_ = transfer.unsent_ = ~uint64_t{0} >> (kMaxStripes - plan.stripes);
    transfer.lost_ = transfer.arrived_ = 0;
    transfer.refused_ = false;
    waiting_bytes_ += piece.bytes;
    if (any() || !submit(transfer)) append(transfer);
  }
  // What of it is on no rail yet is not sent, and what is lost is not sent again: it ends when its
  // rails have done with the rest.
  void drop(Transfer& transfer);
  bool any() const { return first_ != nullptr; }
  void submit_waiting();

 private:
  friend class Transfer;

  void append(Transfer& transfer);
  bool submit(Transfer& transfer);
  void submit_stripe(Transfer& transfer, uint32_t stripe, size_t rail);
  void take_back(Transfer& transfer, uint32_t stripe);
  void drop_unsent(Transfer& transfer);

  LinkRails& rails_;
  RailScheduler& scheduler_;
  Transfer* first_ = nullptr;  // of those that wait
  Transfer* last_ = nullptr;
  uint64_t waiting_bytes_ = 0;
};

}  // namespace slime
