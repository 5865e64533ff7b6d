// Says which ranks keep an operation waiting: at first as information, with a count, because a rank
// is late now and then wherever a machine is busy; as a warning when it stays away.
//
// States: nobody is late; somebody has been since since_ns_; a warning has said so. A result, or
// the end of the job, leads back to the first. Thread: the owner's.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace slime {

class LateRanks {
 public:
  // `name` begins the lines.
  explicit LateRanks(std::string name) : name_(std::move(name)) {}

  // A switch has waited for these ranks for so long. Several switches may miss some, each its own.
  void miss(const std::string& ranks, uint64_t waited_ns, uint64_t now_ns);
  // Call it often; `nobody`: nobody is waited for, or results have come since the last call.
  void look(bool nobody, uint64_t now_ns);

 private:
  const std::string name_;
  std::string ranks_;      // that were named last
  uint64_t named_ns_ = 0;  // then
  uint64_t since_ns_ = 0;  // 0: nobody is late
  uint64_t waits_ = 0;     // so far
  bool warned_ = false;
};

}  // namespace slime
