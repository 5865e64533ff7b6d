// The switches that a rank names (NCCL_SLIME_SWITCH, or Options::switch_address), and how
// operations are cut over them.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/net/host.h"
#include "settings/switch_list.h"
#include "switch/protocol/control.h"

namespace slime {

static_assert(kMaxSwitches == control::kMaxShares && kSwitchPort == control::kDefaultPort);

struct NamedSwitch {
  SocketAddress control;          // its control channel: the same at every rank
  uint32_t weight = 1;            // how much of each operation it takes, beside the others
  Addresses addresses = control;  // all of its control channel, in the order to try
  bool operator==(const NamedSwitch&) const = default;
};

// "host:port,host:port*2": addresses or names, a weight after a '*'. One to kMaxSwitches, of one IP
// version, each named once. Of a name that has addresses of both, those of `family` are taken: that
// of the rails. Waits for the resolver.
Result<std::vector<NamedSwitch>> parse_switches(const std::string& text, sa_family_t family,
                                                const Deadline& limit);

// The chunks of all operations are one stream. Of each `sum of the weights` chunks that follow each
// other, every switch takes as many as its weight. Of one operation the first switch takes what it
// gets from the front, the second what follows that, and so on: one contiguous part each. All ranks
// have the same operations, so all cut them alike.
//
// The weights may change at an operation that all ranks have agreed on (change()). Ranks that are
// behind cut those before it by the old weights still.
//
// States: changes_ has the weights that hold now, and those of later operations, in the order of
// operations; cut() moves on to the next operation and drops what is over.
// Thread rules: one thread. No I/O.
class Spread {
 public:
  using PerSwitch = std::array<uint64_t, kMaxSwitches>;

  explicit Spread(const PerSwitch& weights) { change(0, weights); }

  // How many of the next operation's chunks each switch takes.
  PerSwitch cut(uint64_t chunks);
  uint64_t operations() const { return operations_; }  // that were cut
  // From operation `first` on, at least operations(), and at least that of the change before.
  // One weight is not 0.
  void change(uint64_t first, const PerSwitch& weights);

 private:
  struct Change {
    uint64_t first;
    PerSwitch weights;
  };
  std::deque<Change> changes_;  // the first holds now
  uint64_t operations_ = 0;
  uint64_t chunks_ = 0;  // of these
};

}  // namespace slime
