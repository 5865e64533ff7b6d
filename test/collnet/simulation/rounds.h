// One random life of a job, from one seed: the network's weather, the job's shape, its operations,
// when each rank starts them, and perhaps the end of the switch, and another one.
#pragma once

#include <cstdint>
#include <string>

namespace slime::test {

struct RoundsReport {
  std::string violation;  // empty: all was as it must be
  std::string shape;      // in words
  uint64_t rounds = 0;    // results accepted, by the mean worker
  uint64_t operations = 0;
  // Over all workers.
  uint64_t retransmitted = 0, stale = 0, flag_rounds = 0, fine_rounds = 0, upper_rounds = 0;
  uint64_t guess_rounds = 0, wrong_guesses = 0;
  uint64_t wrong_tokens = 0;
  bool left = false;      // the switch, in mid-run
  bool returned = false;  // to another
};

RoundsReport run_rounds(uint64_t seed);

}  // namespace slime::test
