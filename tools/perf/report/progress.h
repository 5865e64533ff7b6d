// Shows on stderr that a long run is alive: a line that rewrites itself on a terminal, elsewhere a
// line every ten seconds. Rank 0 only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

#include "tools/perf/words.h"

namespace slime::perf {

// States: hidden <-> shown, while its line is on a terminal; only other output makes it hidden.
// Threads: the main thread and Member's both call; the mutex guards all.
class ProgressLine {
 public:
  ProgressLine(const Heartbeat* heartbeat, bool wanted);

  // `duration_s`: of each row; 0: as long as it takes.
  void set_total(size_t rows, double duration_s);
  void tick();        // about four times a second, from any thread
  void before_row();  // something is about to be printed
  void after_row();

 private:
  void erase();
  std::string text(uint64_t now) const;
  void answer_end_request();

  const Heartbeat* const heartbeat_;
  const bool wanted_, terminal_;
  std::mutex mutex_;
  size_t rows_ = 0, total_ = 0;
  uint64_t began_ns_ = 0;  // the first row; 0: not yet
  double seconds_ = 0;     // that all rows will take; 0: unknown
  bool answered_ = false;  // a request to end
  bool shown_ = false;
  uint64_t last_output_ns_;
};

// SIGTERM or SIGINT as a request to end early, with a whole report: for runs with --duration. After
// the call the first such signal is a request; a later one ends the process as usual.
void catch_end_requests();
bool end_requested();

}  // namespace slime::perf
