// The traced threads, and what is going on with each.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <unordered_map>
#include <vector>

namespace slime::pauser {

struct Thread {
  enum class State : uint8_t {
    kRunning,    // or in a stop of its process (SIGSTOP), which is none of ours
    kAsked,      // PTRACE_INTERRUPT: it will stop soon
    kHeld,       // stopped until its time is over
    kListening,  // its process is stopped by SIGSTOP or the like (PTRACE_LISTEN)
  };
  pid_t tid = 0;
  uint64_t serial = 0;  // the kernel gives a tid again
  State state = State::kRunning;
  uint64_t length_ns = 0;   // of the stop that it was asked for
  uint64_t stopped_ns = 0;  // since when it is held
  bool listens = false;     // how a held one goes on: PTRACE_LISTEN, or PTRACE_CONT ...
  int signal = 0;           // ... with this signal
  bool was_held = false;
};

class Threads {
 public:
  Thread* find(pid_t tid);
  Thread* add(pid_t tid);  // or the one that is there
  void remove(pid_t tid);
  // A thread that was not the leader has called execve: it goes on with the leader's tid.
  Thread* take_over(pid_t leader, pid_t former);
  // One that runs; null if some draws find none.
  Thread* choose(std::mt19937_64& random);

  std::vector<Thread>& all() { return threads_; }
  uint64_t seen() const { return serial_; }

 private:
  std::vector<Thread> threads_;
  std::unordered_map<pid_t, size_t> index_;
  uint64_t serial_ = 0;
};

}  // namespace slime::pauser
