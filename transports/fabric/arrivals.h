// Works of the peer that have arrived, until poll() has returned them.
//
// States of an arrival
//   kept       it was in the completion queue, and waits for room in a poll()
//   returned   poll() has returned it; if the peer wants confirmations, its immediate waits in
//              to_confirm() until the channel has sent it
//   dropped    the peer has cancelled it, or this end is fenced: poll() never returns it
//
// Thread: that of the channel.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "transports/rail.h"

namespace slime::fabric {

class Arrivals {
 public:
  // `most_cancelled`: works that the peer can have under way.
  explicit Arrivals(size_t most_cancelled) : most_cancelled_(most_cancelled) {}

  void confirm_to_peer() { confirms_ = true; }  // from its hello

  void add(uint32_t immediate, uint64_t bytes);
  // The peer may reuse the memory of its works with these immediates: they are dropped, whether
  // they are kept or still to come. False: the peer cannot have had so many under way.
  bool cancel(std::span<const uint32_t> immediates);
  // Returns kept ones in done[*count] and behind it.
  void take(std::span<Done> done, size_t* count, RailCounters& counters);
  void drop_kept() { kept_.clear(); }

  size_t kept() const { return kept_.size(); }
  uint64_t count() const { return count_; }  // since the beginning
  std::vector<uint32_t>& to_confirm() { return to_confirm_; }

 private:
  bool is_cancelled(uint32_t immediate);

  const size_t most_cancelled_;
  bool confirms_ = false;
  uint64_t count_ = 0;
  std::vector<Done> kept_;
  std::vector<uint32_t> to_confirm_;
  std::vector<uint32_t> cancelled_;  // immediates of works that are to be dropped
};

}  // namespace slime::fabric
