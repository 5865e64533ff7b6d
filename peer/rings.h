// The rings of a link between engines. Each end takes the records of one without regard to the
// others. When a rail dies, each end tells the other what it has of all of them.
//
// Memory of the link: the rings, then two reports for each rail, of its odd and its even lives: so
// none is written over that of the life before. Then room at this end for what flushes read
// (remote_flushes.h), which nobody looks at.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>

#include "peer/ring.h"

namespace slime {

struct Rings {
  static constexpr size_t kCount = 4;
  using States = std::array<Ring::State, kCount>;
  struct Report {
    uint32_t rail = 0, epoch = 0;  // RailLife
    States states = {};
  };
  static constexpr size_t kReports = kCount * Ring::kBytes;  // where they begin
  static constexpr size_t kFlushRoom = kReports + 2 * kMaxRails * sizeof(Report);
  static constexpr size_t kMemoryBytes = kFlushRoom + sizeof(uint64_t);
  // At both ends. They lie at the beginning of the owner's part of the link's memory.
  static constexpr LinkMemoryBytes kMemory = {kMemoryBytes, kMemoryBytes};

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
  // This end has fenced that life: writes what it has of each ring.
  OutboxPiece report(const RailLife& life) {
    Report report{life.rail, life.epoch, {}};
    std::ranges::transform(all(), report.states.begin(), [](const Ring* r) { return r->state(); });
    std::memcpy(link.memory().outbox() + place_of(life), &report, sizeof report);
    return {place_of(life), sizeof report};
  }
  // Both ends have fenced it: what the peer has. An error has failed the link.
  Result<States> peer_report(const RailLife& life) {
    Report report;
    std::memcpy(&report, link.memory().inbox() + place_of(life), sizeof report);
    if (report.rail != life.rail || report.epoch != life.epoch) {
      (void)link.context().fail_protocol("no report of what it has from a dead rail");
      return fail(link.context().failure());
    }
    Counts counts = {};
    std::ranges::transform(report.states, counts.begin(), &Ring::State::taken);
    if (on_counts(counts) != Status::kOk) return fail(link.context().failure());
    return report.states;
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
  static size_t place_of(const RailLife& life) {
    return kReports + (life.rail * 2 + life.epoch % 2) * sizeof(Report);
  }
  std::array<Ring*, kCount> all() { return {&engine, &events, &notices, &tagged}; }
};

}  // namespace slime
