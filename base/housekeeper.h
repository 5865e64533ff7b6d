// One background thread for a process, which runs tasks when they are due. It starts with the first
// task that needs it and ends with the last reference.
//
// A library in somebody else's process is called only while its caller waits for something. Work
// that must go on in between is a task of this thread: renewing a lease, or repeating a message
// that a peer still needs.
//
// The thread runs on the CPUs near the devices that its tasks work for, as far as the thread that
// started it may run there; else where that one runs.
//
// States of a task: scheduled (in due_), running (running_), or unknown here. Only run() changes
// scheduled to running and back; cancel() ends either, and waits while the task runs. mutex_ guards
// all of it and is not held while a task runs.
//
// Threads: any but its own, which neither cancels the task that it runs nor drops the last
// reference.
#pragma once

#include <pthread.h>

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "base/error.h"
#include "base/machine/cpu_set.h"

namespace slime {

class BackgroundTask {
 public:
  virtual ~BackgroundTask() = default;
  // Called by the housekeeper, never twice at a time. Returns when to call again, in the time of
  // SteadyClock. Other tasks wait as long as this takes: two seconds at most.
  virtual uint64_t run_due(uint64_t now_ns) = 0;
};

class Housekeeper {
 public:
  // `does`: what the caller needs it for, for the error where no thread can be had. `near`: the
  // CPUs near the caller's NICs; empty: not known.
  static Result<std::shared_ptr<Housekeeper>> get(const char* does, const CpuSet& near);
  ~Housekeeper();

  void schedule(BackgroundTask* task, uint64_t due_ns);
  void cancel(BackgroundTask* task);  // waits while it runs

 private:
  Housekeeper() = default;
  Result<void> launch(const char* does);
  void stay_near(const CpuSet& near);
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<uint64_t, BackgroundTask*> due_;  // by time
  BackgroundTask* running_ = nullptr;             // not in due_ meanwhile
  bool ending_ = false;
  bool launched_ = false;
  pthread_t thread_{};
  CpuSet allowed_;  // to the thread that made it
  CpuSet near_;     // changed by get() only, by one thread at a time
};

}  // namespace slime
