#include "link/transfer_queue.h"

#include <bit>
#include <utility>

namespace slime {

void Transfer::on_done(uint32_t stripe) {
  const uint64_t bit = uint64_t{1} << stripe;
  SLIME_CHECK(open_ & ~unsent_ & bit);
  open_ &= ~bit;
  if (open_ == 0) on_end();
}

void Transfer::on_lost(uint32_t stripe) {
  if (refused_ || arrived_ >> stripe & 1) return on_done(stripe);
  queue_->take_back(*this, stripe);
}

bool Transfer::on_refused(uint32_t stripe) {
  if (!piece_.may_be_refused) return false;
  refused_ = true;
  queue_->drop_unsent(*this);
  on_done(stripe);
  return true;
}

void TransferQueue::append(Transfer& transfer) {
  transfer.next_ = nullptr;
  (any() ? last_->next_ : first_) = &transfer;
  last_ = &transfer;
}

void TransferQueue::submit_waiting() {
  while (any() && submit(*first_)) first_ = first_->next_;
  SLIME_CHECK(any() || waiting_bytes_ == 0);
}

// Submits unsent stripes. False: no rail has room for the next one.
bool TransferQueue::submit(Transfer& transfer) {
  const StripePlan& plan = transfer.plan_;
  while (transfer.unsent_ != 0) {
    const auto stripe = static_cast<uint32_t>(std::countr_zero(transfer.unsent_));
    const uint64_t bytes = plan.length(stripe, transfer.piece_.bytes);
    const bool whole = plan.stripes == 1;
    const size_t rail = transfer.piece_.opcode == Opcode::kRead
                            ? scheduler_.choose_rail_for_read(bytes, waiting_bytes_, whole)
                            : scheduler_.choose_rail_for_stripe(bytes, waiting_bytes_, whole);
    if (rail == kNoRail) return false;
    SLIME_CHECK(waiting_bytes_ >= bytes);
    waiting_bytes_ -= bytes;
    transfer.unsent_ &= transfer.unsent_ - 1;
    submit_stripe(transfer, stripe, rail);
  }
  return true;
}

// A stripe without bytes needs no keys and no addresses: only its immediate counts.
void TransferQueue::submit_stripe(Transfer& transfer, uint32_t stripe, size_t i) {
  const TransferPiece& piece = transfer.piece_;
  const LinkRail& rail = rails_[i];
  SLIME_CHECK((rail.rail->caps().opcodes & opcode_bit(piece.opcode)) != 0);
  const bool again = (transfer.lost_ >> stripe & 1) != 0;
  if (again) {
    transfer.lost_ &= ~(uint64_t{1} << stripe);
    rail.channel->counters.retries.add();
  }
  Work work;
  work.length = static_cast<uint32_t>(transfer.plan_.length(stripe, piece.bytes));
  work.immediate = piece.immediate + stripe * piece.immediate_step;
  if (work.length > 0) {
    const uint64_t offset = transfer.plan_.offset(stripe);
    work.local = piece.local + offset;
    work.local_key = rail.local_key(piece.region);
    work.remote_address = piece.remote_address + offset;
    work.remote_offset = piece.remote_offset + offset;
    work.remote_key = piece.remote_keys[i];
  }
  // submit() is inlined twice: for NCCL's writes the compiler knows the opcode, and leaves out what
  // reads need.
  if (piece.opcode == Opcode::kWriteWithImmediate) {
    return rails_.submit(i, work, &transfer, stripe);
  }
  work.opcode = piece.opcode;
  transfer.on_placed(i, work.length, again);
  rails_.submit(i, work, &transfer, stripe);
}

void TransferQueue::drop(Transfer& transfer) {
  if (transfer.done()) return;
  transfer.arrived_ = ~uint64_t{0};
  drop_unsent(transfer);
  if (transfer.done()) transfer.on_end();
}

// Rare, so the queue is walked.
void TransferQueue::drop_unsent(Transfer& transfer) {
  if (transfer.unsent_ == 0) return;
  for (uint64_t left = transfer.unsent_; left != 0; left &= left - 1) {
    const auto stripe = static_cast<uint32_t>(std::countr_zero(left));
    waiting_bytes_ -= transfer.plan_.length(stripe, transfer.piece_.bytes);
  }
  transfer.open_ &= ~std::exchange(transfer.unsent_, 0);
  Transfer* before = nullptr;
  for (Transfer* each = first_; each != &transfer; each = each->next_) before = each;
  (before != nullptr ? before->next_ : first_) = transfer.next_;
  if (last_ == &transfer) last_ = before;
  SLIME_CHECK(any() || waiting_bytes_ == 0);
}

// A stripe was lost: it waits again, in front of the others, because it is older than most of them.
void TransferQueue::take_back(Transfer& transfer, uint32_t stripe) {
  const bool waits = transfer.unsent_ != 0;
  const uint64_t bit = uint64_t{1} << stripe;
  SLIME_CHECK(transfer.open_ & ~transfer.unsent_ & bit);
  transfer.unsent_ |= bit;
  transfer.lost_ |= bit;
  waiting_bytes_ += transfer.plan_.length(stripe, transfer.piece_.bytes);
  if (waits) return;
  transfer.next_ = first_;
  if (!any()) last_ = &transfer;
  first_ = &transfer;
}

}  // namespace slime
