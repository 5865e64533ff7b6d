// Counts what a program asks of its NICs, real ones too: the calls of the data path have no symbols
// (transports/verbs/device/symbols.h), so their entries in the table of each context that is opened
// are replaced.
#pragma once

#include <cstdint>

#include "transports/verbs/device/symbols.h"

namespace slime::test {

struct NicCalls {
  uint64_t polls = 0;     // of completion queues
  uint64_t receives = 0;  // work requests that were posted
  uint64_t arrivals = 0;  // completions of receives
};

// The same functions, which count from the next ibv_open_device on.
verbs::Symbols counting(const verbs::Symbols& verbs);
// Of a context that was opened so. Thread: any, while no other opens one.
NicCalls nic_calls(const ibv_context* context);

}  // namespace slime::test
