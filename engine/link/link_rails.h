// The rails of a link: which are up, which takes a work, and the posting to them. Every work of the
// link passes through submit(), and leaves through flush().
//
// Works are submitted lazily: nothing is posted before flush(). A rail takes works only while it is
// up. set_down() comes before its channel is fenced, clear_queue() when its last completions are
// in, and set_up() begins another life with an empty queue; so no completion of an ended life is
// counted in a later one.
//
// Thread: that of the link.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/link/link_context.h"
#include "engine/link/link_rail.h"
#include "engine/link/rail_choice.h"

namespace slime {

struct LinkClock {
  uint64_t now_ns = 0;
  // Time in which this end polled its rails. It stands still while no call comes: a rail that is
  // not polled is not silent.
  uint64_t polled_ns = 0;
};

class LinkRails {
 public:
  explicit LinkRails(LinkContext& context);
  ~LinkRails();  // folds the counters into the fabric
  LinkRails(const LinkRails&) = delete;
  LinkRails& operator=(const LinkRails&) = delete;

  void add(LinkChannel channel);
  // Links of the same rails shall not all prefer the first one.
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
  // Those with works queued or in flight, a bit each.
  uint32_t busy() const { return busy_; }
  RailLife life_of(size_t rail) const { return {static_cast<uint32_t>(rail), rails_[rail].epoch}; }
  // Works that may still be submitted; some places are kept for control works.
  uint32_t room(size_t rail) const {
    const uint32_t room = rails_[rail].queue.room();
    return room > kControlRoom ? room - kControlRoom : 0;
  }
  // A write of a record of ours; its immediate and cookie are still to be filled in.
  Work write_of(const Outbox& outbox, size_t offset, size_t bytes, size_t rail) const;

  // The rail that would be done first with a small work. At least one rail must be up.
  size_t quickest_rail(uint64_t bytes) {
    if (up_count_ > 1) preferred_ = loads_.quickest(bytes, preferred_);
    return preferred_;
  }
  // Lazy: the NIC is not touched. The caller has checked room(rail).
  void submit(size_t rail, const Work& work) {
    LinkRail& to = rails_[rail];
    to.queue.push(work);
    loads_.submitted(rail, work.length);
    busy_ |= uint32_t{1} << rail;
    RailSigns& signs = to.signs;
    if (!work.unconfirmed) {
      if (signs.confirmed++ == 0) signs.busy_since_ns = clock_.polled_ns;
    } else if (!signs.unproven) {
      signs.unproven = true;
      signs.unproven_ns = clock_.polled_ns;
    }
  }
  // Returns the WorkId.
  uint64_t submit_control(size_t rail, ControlOp op, uint32_t value, Work work = {});
  void submit_control(ControlOp op, uint32_t value) {
    if (up_count_ > 0) (void)submit_control(quickest_rail(0), op, value);
  }

  // Posts what the rules let out. `now_known`: the clock has been read since the caller was called.
  void flush(size_t rail, bool now_known) {
    if (rails_[rail].queue.queued() > 0) flush_queued(rail, now_known);
  }
  // For a small message that somebody waits for: posts at once where nothing is in flight, instead
  // of at the next call of progress().
  void hurry(size_t rail) {
    if (rails_[rail].queue.in_flight() == 0) flush(rail, false);
  }
  // A work of an up rail is done.
  void completed(size_t rail, bool confirmed, uint64_t bytes) {
    LinkRail& from = rails_[rail];
    if (confirmed) {
      --from.signs.confirmed;
      from.signs.busy_since_ns = clock_.polled_ns;
      if (!from.confirmed_by_nic) from.signs.heard_ns = clock_.polled_ns;
    }
    from.queue.complete(bytes);
    if (rails_.size() > 1) from.rate.completed(bytes);
    if (from.queue.queued() + from.queue.in_flight() == 0) busy_ &= ~(uint32_t{1} << rail);
  }

  void set_up(size_t rail);
  void set_down(size_t rail);
  void clear_queue(size_t rail);  // what was queued or in flight
  void update_load(size_t rail);

 private:
  void flush_queued(size_t rail, bool now_known);

  LinkContext& context_;
  std::vector<LinkRail> rails_;
  RailLoads loads_;  // of rails_
  size_t up_count_ = 0;
  size_t preferred_ = 0;  // by small works; the only rail that is up, if there is one only
  uint32_t busy_ = 0;
  LinkClock clock_;
};

}  // namespace slime
