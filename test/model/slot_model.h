// One slot of SAP/2 between workers and one switch, or a root and its leaves, over a network that
// loses, duplicates and reorders. Payloads are ghosts: a value is the multiset of (worker, round)
// that was folded into it, so that a wrong sum shows.
#pragma once

#include <vector>

#include "test/model/explorer.h"
#include "test/model/rules.h"

namespace slime::model {

struct Bounds {
  std::vector<uint32_t> leaves;  // workers below each leaf; one entry: a single switch
  uint32_t rounds = 2;
  uint32_t capacity = 2;       // packets on the way per direction and hop; what is more is lost
  uint32_t capacity_down = 0;  // towards the workers; 0: as `capacity`
  int retries = -1;            // retransmissions per worker; -1: any number
  bool duplicates = false;
  bool ordered = false;     // queues whose packets are told apart by age, still taken in any order
  bool fence = false;       // once, at any time, the job moves to its next generation
  bool forger = false;      // at any time: packets that are right in everything but the token
  bool damage = false;      // a result may arrive with a bit flipped in one copy of its lanes
  bool renumber = false;    // ... and begins with the first epoch again, as another job would
  uint32_t life = 1u << 8;  // rounds after which the network has lost a packet for good
};

class SlotModel final : public Model {
 public:
  SlotModel(const Rules& rules, Bounds bounds);
  std::string initial() const override;
  void successors(const std::string& state, const Reach& reach) const override;
  bool finished(const std::string& state) const override;
  const char* wrong(const std::string& state) const override;

 private:
  friend class Walk;
  const Rules& rules_;
  const Bounds bounds_;
  uint32_t workers_ = 0;
  bool tree_ = false;
  std::vector<uint32_t> leaf_of_, child_of_;
};

}  // namespace slime::model
