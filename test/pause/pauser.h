// Stops random threads of a command for random times, and lets everything else pass: signals, stops
// by signals, threads and processes that begin and end. One thread; see ptrace(2).
#pragma once

#include <csignal>
#include <cstdint>
#include <queue>
#include <random>
#include <vector>

#include "test/pause/command.h"
#include "test/pause/options.h"
#include "test/pause/threads.h"

namespace slime::pauser {

struct Summary {
  uint64_t stops = 0;
  uint64_t threads_stopped = 0, threads_seen = 0;
  uint64_t longest_ns = 0;
};

class Pauser {
 public:
  // `signals`: blocked in this thread; SIGCHLD, and those that end the command.
  Pauser(const Options& options, pid_t root, const sigset_t& signals);

  // Until the command and all its processes have ended; its wait status.
  int run();
  Summary summary() const;

 private:
  struct Release {
    uint64_t at_ns, serial;
    pid_t tid;
    bool operator>(const Release& other) const { return at_ns > other.at_ns; }
  };

  bool take_events();
  void on_event(pid_t tid, int status);
  void on_stop(pid_t tid, int signal, int event);
  void on_root_end(int status);
  void hold(Thread* thread);
  void let_go(Thread* thread);
  void release_due(uint64_t now);
  void stop_one_if_due(uint64_t now);
  void wait_for_signal(uint64_t now);
  void on_end_request(int signal, uint64_t now);
  void kill_if_due(uint64_t now);
  void end_pauses();
  void kill_all();
  uint64_t draw_gap_ns();

  const Options& options_;
  const pid_t root_;
  const sigset_t signals_;
  std::mt19937_64 random_;
  Threads threads_;
  std::priority_queue<Release, std::vector<Release>, std::greater<>> releases_;
  uint64_t next_stop_ns_;
  bool pausing_ = true;
  bool more_events_ = false;
  uint64_t asked_to_end_ns_ = 0;  // 0: not yet
  bool killing_ = false;
  int status_ = 0;
  Summary summary_;
};

}  // namespace slime::pauser
