// Verbs channels that have closed, and whose peers have not heard of it yet.
#pragma once

#include "transports/verbs/rail.h"

namespace slime::test {

inline size_t count_farewells(Rail& rail) {
  verbs::Farewells& farewells = static_cast<verbs::VerbsRail&>(rail).farewells();
  farewells.poll();
  return farewells.size();
}

}  // namespace slime::test
