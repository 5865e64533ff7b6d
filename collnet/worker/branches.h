// Which ranks are below which switch, and which of them a round waits for. Ranks may name different
// switches, the leaves of a tree.
//
// Thread rules: one thread. No clock of its own: the caller gives the time.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/net/socket.h"

namespace slime {

struct Branch {
  SocketAddress control;        // of the leaf, as its ranks name it
  std::vector<uint32_t> ranks;  // in order: child i there is ranks[i]; the first asks for all
};

// In the order of their lowest ranks. `controls`: what each rank named, by rank.
std::vector<Branch> branches_of(std::span<const SocketAddress> controls);
// Fails where a switch would have more children than SAP/2 can name.
Result<void> check_branches(std::span<const Branch> branches);

// "1, 4-7": the ranks whose child's bit is not set.
std::string ranks_without(const std::vector<uint32_t>& ranks, uint32_t arrived);

// The ranks that are missing, by the switch's answers to questions.
//
// States: no rank is known to be missing, or `arrived_` holds the ranks that are not; on_status()
// and clear() change the state. A report is made once for each new set of ranks, and taken once.
class Stragglers {
 public:
  // `branches`: of the job, that of this rank among them; empty: child i of the switch is rank i.
  // They outlive this object.
  Stragglers(std::span<const Branch> branches, uint32_t own_branch, uint32_t contributors)
      : branches_(branches), own_branch_(own_branch), contributors_(contributors) {}

  // A bit for each child that has contributed: of our switch; at the root, leaves; without a switch
  // (`direct`), ranks.
  struct Arrived {
    uint32_t bits = 0;
    bool at_root = false;
    bool direct = false;
    bool operator==(const Arrived&) const = default;
  };
  void on_status(const Arrived& arrived, uint64_t now_ns);
  void clear();  // a result has come, or the job has moved

  // The ranks that the newest status lacks, as "1, 4-7"; empty without a status.
  std::string missing() const { return arrived_ ? missing(*arrived_) : ""; }
  // The same, if it is new: a report every few seconds, because many slots may wait for different
  // ranks.
  std::optional<std::string> take_report();

 private:
  std::string missing(const Arrived& arrived) const;
  std::string missing_branches(uint32_t arrived) const;

  const std::span<const Branch> branches_;
  const uint32_t own_branch_, contributors_;
  std::optional<Arrived> arrived_;   // by the newest answer to a question
  std::optional<Arrived> reported_;  // since the last result
  std::optional<std::string> report_;
  uint64_t report_again_ns_ = 0;
};

}  // namespace slime
