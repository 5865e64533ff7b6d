// One random life of a link, from one seed: messages of random sizes and tags, grouped receives,
// calls in random order, and rails that reorder, delay, repeat completions, die, return and die
// again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace slime::test {

struct ScheduleReport {
  std::string violation;  // empty: all was as it must be
  bool failed = false;    // the link ended with an error (allowed only when no rail was left)
  uint32_t rails = 0;
  uint32_t deaths = 0;   // rails that were made to die
  uint64_t rejoins = 0;  // rails that returned to their link, counted at the sender
  uint64_t messages = 0;
  uint64_t retries = 0;  // works repeated on another rail
  uint64_t eager = 0;    // messages small enough to go ahead of their CTS
};

// The simulated hosts, reused from seed to seed.
class ScheduleWorld {
 public:
  ScheduleWorld();
  ~ScheduleWorld();
  ScheduleReport run(uint64_t seed);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace slime::test
