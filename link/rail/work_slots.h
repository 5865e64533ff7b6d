// The works of one rail that wait or are in flight: whom to tell of each, and its length.
//
// States of a slot: free, or taken from add() to end() or hand_back(). Its generation counts both,
// and is odd while it is taken. The cookie of a work is its slot and its generation. So a
// completion that comes twice or late changes nothing, nor does one of a work that never was.
//
// The memory of all slots is reserved at first, unless they grow with the works that are open at
// once. Thread: that of the link.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/check.h"

namespace slime {

// Whoever submitted a work learns here what became of it. `part` is its own number for the work.
// It lives until then, or until the link ends. When the link fails, nobody is told any more.
class WorkOwner {
 public:
  // kSent of the rail (Done): on a link of several rails, or with a lifeline, it has arrived,
  // unless it was Work::unconfirmed.
  virtual void on_done(uint32_t part) = 0;
  // Its rail has died, and no rail will say whether it has arrived.
  virtual void on_lost(uint32_t part) = 0;
  // kRefused of the rail. False: the owner did not expect that, and the link fails.
  virtual bool on_refused(uint32_t /*part*/) { return false; }

 protected:
  ~WorkOwner() = default;
};

// It says when the owner of a lost work is told, and whether an end of it is activity of the link.
enum class WorkKind : uint8_t {
  kUser,     // when both ends have fenced the rail: a work of the link's user
  kControl,  // when this end has fenced it
  kProbe,    // the same; no activity: it shows that a rail works, not that a request goes on
};

struct OpenWork {
  WorkOwner* owner = nullptr;  // nullptr: nobody is told
  uint32_t part = 0;
  uint32_t length = 0;
  WorkKind kind = WorkKind::kUser;
  bool confirmed = true;  // not Work::unconfirmed
  bool read = false;      // Opcode::kRead
};

class WorkSlots {
 public:
  // `most`: works that are queued or in flight at once. `generation`: the first one, for tests;
  // even.
  explicit WorkSlots(uint32_t most, uint32_t generation = 0, bool grows = false)
      : most_(most), first_generation_(generation) {
    slots_.reserve(grows ? std::min(most, kFirstPlaces) : most);
  }

  // Returns the cookie.
  uint64_t add(const OpenWork& work) {
    if (free_ == kNone) grow();
    const uint32_t index = free_;
    Slot& slot = slots_[index];
    SLIME_CHECK(slot.is_free());
    free_ = slot.next_free;
    // One by one, as in PostQueue::push().
    slot.work.owner = work.owner;
    slot.work.part = work.part;
    slot.work.length = work.length;
    slot.work.kind = work.kind;
    slot.work.confirmed = work.confirmed;
    slot.work.read = work.read;
    if (work.kind != WorkKind::kUser) ++controls_;
    return uint64_t{++slot.generation} << 32 | index;
  }

  // nullptr: no such work is open. The slot is free, and its work stays there until the next add().
  const OpenWork* end(uint64_t cookie) {
    const auto index = static_cast<uint32_t>(cookie);
    if (index >= slots_.size()) return nullptr;
    Slot& slot = slots_[index];
    if (slot.generation != cookie >> 32 || slot.is_free()) return nullptr;
    return free(index);
  }

  // Ends the works of the user, or all others, and tells their owners that they are lost. An owner
  // may add works meanwhile, to another rail.
  void hand_back(bool of_user) {
    for (uint32_t i = 0; i < slots_.size(); ++i) {
      const bool users = slots_[i].work.kind == WorkKind::kUser;
      if (slots_[i].is_free() || users != of_user) continue;
      const OpenWork* const work = free(i);
      if (work->owner != nullptr) work->owner->on_lost(work->part);
    }
  }

  // Whether a work is open for which which(owner, part) is true.
  template <typename Which>
  bool any_open(Which which) const {
    return std::ranges::any_of(slots_, [&](const Slot& slot) {
      return !slot.is_free() && which(slot.work.owner, slot.work.part);
    });
  }
  uint32_t controls() const { return controls_; }  // open works of other kinds than kUser
  bool none_open() const { return std::ranges::all_of(slots_, &Slot::is_free); }

 private:
  static constexpr uint32_t kNone = UINT32_MAX, kFirstPlaces = 64;
  struct Slot {
    OpenWork work;
    uint32_t generation;
    uint32_t next_free = kNone;

    bool is_free() const { return generation % 2 == 0; }
  };

  const OpenWork* free(uint32_t index) {
    Slot& slot = slots_[index];
    SLIME_CHECK(!slot.is_free());
    ++slot.generation;
    slot.next_free = free_;
    free_ = index;
    if (slot.work.kind != WorkKind::kUser) --controls_;
    return &slot.work;
  }
  // Rare: it must not keep add() from being inlined.
  [[gnu::noinline, gnu::cold]] void grow() {
    SLIME_CHECK(slots_.size() < most_);
    free_ = static_cast<uint32_t>(slots_.size());
    slots_.push_back({.work = {}, .generation = first_generation_});
  }

  const uint32_t most_, first_generation_;
  std::vector<Slot> slots_;
  uint32_t free_ = kNone;  // the last one that became free: it is in the cache
  uint32_t controls_ = 0;
};

}  // namespace slime
