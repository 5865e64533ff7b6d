// What NIC and driver counted between two looks.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>

namespace slime::bench {

struct Counts {
  uint64_t packets = 0;      // sent by both ports, acknowledgements too; 0: not counted by driver
  uint64_t retries = 0;      // receiver not ready, out of sequence, sent again: of both ports
  uint64_t doorbells = 0;    // ibv_post_send of the sending NIC
  uint64_t completions = 0;  // of sends, polled at the sending NIC

  Counts operator-(const Counts& before) const {
    return {packets - before.packets, retries - before.retries, doorbells - before.doorbells,
            completions - before.completions};
  }
  Counts& operator+=(const Counts& more) {
    packets += more.packets;
    retries += more.retries;
    doorbells += more.doorbells;
    completions += more.completions;
    return *this;
  }
};

// Counts calls of the data path from now on: one sending context a program.
void count_calls(ibv_context* sender);
// `from`, `to`: devices; their first ports are meant.
Counts look(const std::string& from, const std::string& to);

}  // namespace slime::bench
