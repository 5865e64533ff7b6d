// The works of one channel that are under way: which of them the provider has completed, which the
// peer has reported, and which poll() may return as kSent.
//
// Each has a place in a ring, by its position since the beginning. A place is free again when its
// work is complete, has been returned as kSent and, with confirmations, the peer has said that it
// has reported it; a silent write, which no peer reports, when it is visible instead. That is after
// its completion (sender.h). Works may complete in any order, but places come free in theirs.
//
// The peer names works by their immediates. Several may have the same one, and they may arrive in
// any order: then none of them counts as reported until all are.
//
// Threads: one at a time.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <span>
#include <vector>

#include "transports/rail.h"

namespace slime::fabric {

class Window {
 public:
  // `places` is a power of two.
  Window(uint32_t places, bool confirmed);

  size_t room() const { return places_.size() - under_way(); }
  size_t under_way() const { return next_ - oldest_; }
  // By the provider: how many are complete since the beginning, and how many are not.
  uint64_t completed() const { return completed_; }
  uint64_t incomplete_count() const { return added_ - completed_; }

  // Returns the operation context that the provider is given, which leads back to the place.
  void* add(const Work& work);
  void forget_newest();  // the provider did not take it
  // The channel has failed; take() never returns the newest `count` works.
  void withhold_newest(size_t count);
  // False: this is no context of a work under way.
  bool complete(void* context);
  // The same, of a read or silent write that was refused; false for others too.
  bool refuse(void* context);
  // Works with these immediates have been reported by the peer. False: so many were never sent.
  bool report(std::span<const uint32_t> immediates);
  // Silent writes that are complete and may not be visible yet; the oldest `count` of them are.
  size_t unseen() const { return unseen_.size(); }
  void show(size_t count);
  // What poll() may return as kSent or kRefused, each once.
  size_t take(std::span<Done> done);
  // Immediates of the works that the provider has not completed.
  std::vector<uint32_t> incomplete() const;

 private:
  struct Place {
    fi_context2 context = {};  // stays first: complete() finds the place by it
    uint64_t cookie = 0;
    uint32_t immediate = 0;
    Opcode opcode = Opcode::kWriteWithImmediate;
    bool unconfirmed = false, refused = false;
    bool complete = false, reported = false, done = false, taken = false;
    bool silent() const { return opcode == Opcode::kWrite; }
  };
  Place& at(uint32_t position) { return places_[position & (places_.size() - 1)]; }
  const Place& at(uint32_t position) const { return places_[position & (places_.size() - 1)]; }
  Place* find(void* context);
  uint32_t position_of(const Place& place) const;
  void settle(uint32_t position);
  bool is_done(const Place& place) const;
  bool report_one(uint32_t immediate);

  const bool confirmed_;
  std::vector<Place> places_;
  uint32_t oldest_ = 0, next_ = 0;  // positions
  std::vector<uint32_t> done_;      // a ring of positions, for take()
  uint32_t done_end_ = 0, taken_ = 0;
  std::vector<uint32_t> ambiguous_;  // reported, but not yet all works with that immediate
  std::vector<uint32_t> unseen_;     // positions, in the order of their completions
  uint64_t added_ = 0, completed_ = 0;
};

}  // namespace slime::fabric
