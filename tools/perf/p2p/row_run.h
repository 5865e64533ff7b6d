// What is done for one size: all bytes are checked, then the engine and the plain loop are measured
// by turns. Both ranks do the same calls. Thread: one.
#pragma once

#include "tools/perf/p2p/endpoint.h"
#include "tools/perf/p2p/partner.h"
#include "tools/perf/p2p/plain.h"
#include "tools/perf/p2p/report.h"

namespace slime::perf::p2p {

class RowRun {
 public:
  // `plain` may be nullptr: then only the engine is measured. The arguments outlive this object.
  RowRun(const Options& options, Partner& partner, Endpoint& endpoint, PlainLoop* plain,
         uint64_t piece_bytes)
      : options_(options),
        partner_(partner),
        endpoint_(endpoint),
        plain_(plain),
        layout_(options, piece_bytes),
        seconds_(options.seconds / options.turns) {}

  Result<Row> run();

 private:
  bool is_initiator() const { return partner_.is_initiator(); }
  Result<void> check(Row* row);
  template <typename Move>
  Result<void> check(bool counts, Move move, Row* row);
  void count_back();
  template <typename Load>
  Result<void> with_engine(Load load);
  template <typename Load>
  Result<void> with_plain_loop(uint64_t way, Load load);
  template <typename Part>
  Result<void> part_of(Sample* sample, Part part);
  Result<void> measure_turn(const Requests& requests, double seconds, Sample* sample) const;
  Result<void> engine_turn(Sample* sample);
  Result<void> plain_turn(Sample* sample);
  Result<void> choose_way();

  const Options& options_;
  Partner& partner_;
  Endpoint& endpoint_;
  PlainLoop* const plain_;
  const Layout layout_;
  const double seconds_;  // of a turn
  uint64_t way_ = 0;      // of PlainLoop::ways()
};

}  // namespace slime::perf::p2p
