// Runs the rows of the table: timed operations, then checked ones, out of place and in place; each
// half once, or again and again until its time is over (--duration). Then a request to end is
// looked at every fifth of a second, or after every operation that takes longer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/error.h"
#include "tools/perf/buffer.h"
#include "tools/perf/collective/communicator.h"
#include "tools/perf/options.h"
#include "tools/perf/report/report.h"
#include "tools/perf/values.h"

namespace slime::perf {

// Times of operations, of a bounded number of them: evenly spread over however many there are.
class Samples {
 public:
  static constexpr size_t kMost = 1000;

  // Which operations are kept depends on their number alone, so ranks keep the same ones.
  void add(uint64_t time_ns) {
    if (seen_++ % every_ != 0) return;
    if (times_ns_.size() == kMost) thin_out();
    times_ns_.push_back(time_ns);
  }
  const std::vector<uint64_t>& times_ns() const { return times_ns_; }

 private:
  // Keeps every second one, from here on too; the next one is one of them.
  static_assert(kMost % 2 == 0);
  void thin_out() {
    for (size_t i = 0; i < kMost / 2; ++i) times_ns_[i] = times_ns_[2 * i];
    times_ns_.resize(kMost / 2);
    every_ *= 2;
  }

  std::vector<uint64_t> times_ns_;
  uint64_t seen_ = 0, every_ = 1;
};

struct BenchmarkSetup {
  const Options* options = nullptr;
  Member* member = nullptr;
  Communicator* communicator = nullptr;
  Pulse* pulse = nullptr;
  Buffer* send_buffer = nullptr;
  Buffer* receive_buffer = nullptr;
  int rank = 0, ranks = 2, channels = 1;
  AllowedProtocols protocols;
};

// Bytes that the send buffer and the receive buffer need, each.
size_t buffer_bytes(const Options& options, int ranks);

// Every rank makes the same calls in the same order; what one rank decides alone (time, signals) is
// exchanged before the ranks act on it. Thread rules: the main thread. The buffers belong to the
// caller and are written between two operations only.
class Benchmark {
 public:
  explicit Benchmark(const BenchmarkSetup& setup) : setup_(setup) {}

  size_t row_count() const { return cases().size(); }

  // A signal has asked for it (progress.h), and all ranks have agreed: rows may be missing.
  bool ended_early() const { return ending_; }

  // Calls `show` on every rank after each row; the figures are the same everywhere.
  Result<void> run(const std::function<void(const Row&)>& show);

 private:
  struct Case {  // what a row is about
    DataType type;
    std::optional<RedOp> op;
    int root;
    uint64_t bytes;
  };
  // One row, or one half of it, in the terms of the plan.
  struct Half {
    Shape shape;
    Counts counts;
    Pattern pattern;
    size_t stride = 0;  // bytes of one operation
  };
  // What this rank has seen of a half.
  struct Tally {
    uint64_t timed_ns = 0, operations = 0;
    uint64_t longest_ns = 0;    // operation
    uint64_t operation_ns = 0;  // of late, warm-ups included; 0: not known yet
    Samples samples;
    uint64_t checked = 0, wrong = 0;  // operations, elements
  };

  std::vector<Case> cases() const;
  Result<Row> run_row(const Case& one);
  Half half_of(const Case& one, const Row& row, bool in_place) const;
  Result<Measurement> measure(const Half& half);
  void choose_path(Row* row, size_t bytes) const;
  Job job_of(const Half& half, uint32_t operations, uint32_t repeats) const;
  uint32_t fitting(size_t stride) const;
  bool lasts(const Half& half) const;
  Result<bool> agree_to_go_on(uint64_t began_ns);
  Result<uint32_t> agree_on_operations(const Tally& tally);
  Result<void> time(const Half& half, Tally* tally);
  Result<void> run_timed(const Half& half, uint32_t warmups, uint32_t timed, Tally* tally);
  Result<void> check_some(const Half& half, uint64_t began_ns, Tally* tally);
  void show_progress(const Half& half, const Tally& tally);
  Result<void> check(const Half& half, Tally* tally);
  void prepare_check(const Half& half, uint32_t operation, char* input);
  uint64_t verify(const Half& half, uint32_t operation, const char* output);
  uint64_t verify_guard(size_t used) const;
  void clean(DataType type, size_t used);
  bool is_checked(const Half& half) const;
  Result<Measurement> gather(const Half& half, const Tally& tally);

  const BenchmarkSetup setup_;
  bool ending_ = false;
  uint32_t repetition_ = 0;         // of checked data; another one for every operation
  std::string where_;               // the row and its half
  std::optional<DataType> filled_;  // with ones of this type ...
  size_t dirty_bytes_ = 0;          // ... but for this many bytes at the start
};

}  // namespace slime::perf
