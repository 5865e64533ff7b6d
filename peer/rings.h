// The rings of a link between engines. Each end takes the records of one without regard to the
// others.
#pragma once

#include <algorithm>
#include <array>

#include "peer/ring.h"

namespace slime {

struct Rings {
  static constexpr size_t kCount = 4;
  // At both ends. They lie at the beginning of the owner's part of the link's memory.
  static constexpr LinkMemoryBytes kMemory = {kCount * Ring::kBytes, kCount* Ring::kBytes};

  explicit Rings(Link& of)
      : link(of),
        engine(of, {0, ControlOp{1}, ControlOp{3}, false}),
        events(of, {1, ControlOp{10}, ControlOp{11}}),
        notices(of, {2, ControlOp{12}, ControlOp{13}}),
        tagged(of, {3, ControlOp{14}, ControlOp{15}}) {}

  void move() {
    for (Ring* ring : all()) ring->move();
  }
  // How many slots of each one this end has taken.
  using Counts = std::array<uint32_t, kCount>;
  Counts taken() {
    Counts counts = {};
    std::ranges::transform(all(), counts.begin(), [](const Ring* ring) { return ring->taken(); });
    return counts;
  }
  Status on_counts(const Counts& counts) {
    for (size_t i = 0; i < kCount; ++i) {
      if (const Status status = all()[i]->on_count(counts[i]); status != Status::kOk) return status;
    }
    return Status::kOk;
  }
  void count_again() {
    for (Ring* ring : all()) ring->count_again();
  }
  Status on_arrived(uint32_t immediate) {
    const ControlOp op = control_op(immediate);
    const uint32_t value = control_value(immediate);
    for (Ring* ring : all()) {
      if (is_control(immediate) && ring->takes(op, value)) return ring->on_arrived(op, value);
    }
    return link.context().fail_protocol("an immediate that means nothing between engines");
  }

  Link& link;
  Ring engine;   // what engines ask each other (records.h)
  Ring events;   // what engines carry out at once (messages/messages.h)
  Ring notices;  // what programs fetch (messages/notices.h)
  Ring tagged;   // what programs receive (messages/tagged.h)

 private:
  std::array<Ring*, kCount> all() { return {&engine, &events, &notices, &tagged}; }
};

}  // namespace slime
