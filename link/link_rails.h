// The rails of a link: which ones are up, which one takes a small work, and the posting of works.
// Every work of the link enters through submit() and leaves through flush().
//
// Posting is lazy: nothing is posted before flush(). A rail takes works only while it is up.
//
// What makes reuse safe: a life ends in three steps. set_down() comes before the channel is fenced.
// clear_queue() comes when the last completions have been processed, hand_back_works() when the
// peer has fenced the rail too, which may be among these. set_up() then begins another life, with
// an empty queue and no open work. So no completion of an ended life counts in a later one.
//
// Thread: that of the link.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "link/link_context.h"
#include "link/rail/link_rail.h"
#include "link/rail_choice.h"

namespace slime {

// Room of a posting queue that room() keeps back for works which nobody checks room for.
// Control works: of one rail a kFenceNotice, a kJoin, a kRetry and a kJoined of its last try, and
// those of all other rails may travel over one; the others are a kJoined of an earlier try, a
// probe, an answer, and the user's. submit_control() fails the link that needs more.
inline constexpr uint32_t kControlRoom = 4 * (kMaxRails - 1) + 20;
// What the user submits again when a rail has died.
inline constexpr uint32_t kAgainRoom = 96;
static_assert(kControlRoom + kAgainRoom <= PostQueue::kCapacity / 2);

// A control work. `owner` (nullptr: none) is told what became of `part`.
struct ControlWork {
  ControlOp op;
  uint32_t value;
  WorkOwner* owner = nullptr;
  uint32_t part = 0;
  WorkKind kind = WorkKind::kControl;
  OutboxPiece piece = {};
};

struct LinkClock {
  uint64_t now_ns = 0;
  // The time during which this end polled its rails. It stands still while no call comes, because a
  // rail that is not polled is not silent.
  uint64_t polled_ns = 0;
};

class LinkRails {
 public:
  LinkRails(LinkContext& context, const LinkMemory& memory);
  ~LinkRails();  // folds the counters into the devices
  LinkRails(const LinkRails&) = delete;
  LinkRails& operator=(const LinkRails&) = delete;

  void add(LinkChannel channel);
  // The rail that small works prefer at first. Links over the same rails get different ones.
  void prefer(size_t rail) { preferred_ = rail; }

  LinkContext& context() const { return context_; }
  const LinkClock& clock() const { return clock_; }
  void read_clock();
  size_t count() const { return rails_.size(); }
  size_t up_count() const { return up_count_; }
  std::vector<LinkRail>& all() { return rails_; }
  LinkRail& operator[](size_t rail) { return rails_[rail]; }
  const LinkRail& operator[](size_t rail) const { return rails_[rail]; }
  const RailLoads& loads() const { return loads_; }
  // The rails with works queued or in flight, a bit each.
  uint32_t busy() const { return busy_; }
  RailLife life_of(size_t rail) const {
    return {static_cast<uint32_t>(rail), rails_[rail].life.epoch()};
  }
  // The number of works that may still be submitted.
  uint32_t room(size_t rail) const {
    const uint32_t room = rails_[rail].queue.room(), kept = kControlRoom + kAgainRoom;
    return room > kept ? room - kept : 0;
  }
  // The same, of reads. No more are queued than may be in flight: what is behind a read in the
  // queue does not wait for answers to others.
  uint32_t room_for_reads(size_t rail) const {
    return std::min(room(rail), rails_[rail].most_reads - rails_[rail].reads);
  }
  const LinkMemory& memory() const { return memory_; }
  // Before the choice of a rail for so many bytes: takes in what the process's other links have
  // outstanding. Smaller works are done before that matters.
  void look_at_others(uint64_t bytes) {
    if (bytes >= kWorthTelling) update_unmeasured();
  }
  // The rail that would be done first with a small work. At least one rail must be up.
  size_t quickest_rail(uint64_t bytes) {
    SLIME_CHECK(up_count_ > 0);
    if (up_count_ <= 1) return preferred_;
    look_at_others(bytes);
    return preferred_ = loads_.quickest(bytes, preferred_);
  }
  // A write that copies a piece of the outbox to the peer.
  Work write_of(const OutboxPiece& piece, size_t rail, uint32_t immediate) const {
    return {.local = memory_.outbox() + piece.offset,
            .local_key = rails_[rail].local_key(memory_.outbox_region()),
            .remote_address = memory_.peer_inbox().address + piece.offset,
            .remote_offset = piece.offset,
            .remote_key = memory_.peer_inbox().keys[rail],
            .length = static_cast<uint32_t>(piece.bytes),
            .immediate = immediate};
  }
  // Queues the work; the NIC is not touched. The caller has checked room(rail). `owner` is told
  // what became of `part`; the work's cookie does not matter. Inlined, so that the work is made in
  // registers: a copy in memory would wait for the stores which made it.
  [[gnu::always_inline]] void submit(size_t rail, const Work& work, WorkOwner* owner, uint32_t part,
                                     WorkKind kind = WorkKind::kUser) {
    LinkRail& to = rails_[rail];
    const bool read = work.opcode == Opcode::kRead;
    SLIME_CHECK(to.up() && (!read || to.reads < to.most_reads));
    to.queue.push(work, to.works.add({owner, part, work.length, kind, !work.unconfirmed, read}));
    if (read) [[unlikely]]
      ++to.reads;
    loads_.submitted(rail, work.length);
    if (work.length >= kWorthTelling) tell_others(to);
    busy_ |= uint32_t{1} << rail;
    to.signs.submitted(!work.unconfirmed, clock_.polled_ns);
  }
  // If it is lost, its owner is told so at once.
  void submit_control(size_t rail, const ControlWork& control);
  void submit_control(ControlOp op, uint32_t value) {
    if (up_count_ > 0) submit_control(quickest_rail(0), {op, value});
  }

  // Posts works as far as the rules of PostQueue allow. `now_known`: the clock has been read during
  // this call.
  void flush(size_t rail, bool now_known) {
    if (rails_[rail].queue.queued() > 0) flush_queued(rail, now_known);
  }
  // For a small message: posts at once where nothing is in flight, not at the next progress(),
  // because the peer may be waiting for it.
  void hurry(size_t rail) {
    if (rails_[rail].queue.in_flight() == 0) flush(rail, false);
  }
  // A work of a rail that is up is done, or was refused. `from` is that rail, which the caller has
  // at hand.
  void completed(size_t rail, LinkRail& from, const OpenWork& work) {
    SLIME_CHECK(from.up() && &from == &rails_[rail]);
    if (work.confirmed) from.signs.completed(!from.confirmed_by_nic, clock_.polled_ns);
    from.queue.complete(work.length);
    if (work.read) [[unlikely]]
      --from.reads;
    if (rails_.size() > 1) from.rate.completed(work.length);
    if (from.queue.queued() + from.queue.in_flight() == 0) busy_ &= ~(uint32_t{1} << rail);
  }

  void set_up(size_t rail);
  void set_down(size_t rail);
  // Forgets works that were queued or in flight. What the user submitted is open until
  // hand_back_works(), when both ends have fenced the rail.
  void clear_queue(size_t rail);
  void hand_back_works(size_t rail) {
    SLIME_CHECK(rails_[rail].life.state() == RailState::kDown);
    rails_[rail].works.hand_back(true);
  }
  void update_load(size_t rail);

 private:
  static constexpr uint64_t kWorthTelling = 4096;

  void begin_life(size_t rail);
  void update_unmeasured();
  void flush_queued(size_t rail, bool now_known);
  void tell_others(LinkRail& rail);

  LinkContext& context_;
  const LinkMemory& memory_;
  std::vector<LinkRail> rails_;
  RailLoads loads_;  // of rails_
  size_t up_count_ = 0;
  size_t preferred_ = 0;  // the rail of the last small work; the only rail that is up, if one is
  uint32_t busy_ = 0;
  LinkClock clock_;
};

}  // namespace slime
