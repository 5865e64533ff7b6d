// Verbs channels that have closed, and whose close messages have not arrived yet.
#pragma once

#include "transports/verbs/rail.h"

namespace slime::test {

inline size_t count_closing(Rail& rail) {
  auto& closing = static_cast<verbs::VerbsRail&>(rail).closing();
  closing.poll();
  return closing.size();
}

}  // namespace slime::test
