// Two ports of RDMA NICs: without hardware (FakeVerbs), or the real ones that SLIME_VERBS_RAILS
// names ("rxe0,rxe1").
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "settings/settings.h"
#include "test/support/verbs/fake_verbs.h"
#include "test/support/verbs/nic_calls.h"
#include "transports/rail.h"

namespace slime::test {

class TwoPorts {
 public:
  static bool are_real();

  // The device's name and interface in `settings` are replaced. Ends the program, with the reason,
  // where there are no two such rails.
  explicit TwoPorts(Settings settings);

  bool step() { return fake && fake->step(); }  // as FakeVerbs does; false with real ports

  std::optional<FakeVerbs> fake;  // unless they are real
  verbs::Symbols symbols;         // which count (nic_calls.h)
  std::vector<std::unique_ptr<Rail>> rails;
};

}  // namespace slime::test
