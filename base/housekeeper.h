// One background thread for a process. It runs tasks when they are due. The first get() starts it,
// and it ends with the last reference.
//
// Why it exists: a host program calls the plugin only while it waits for something. Work that must
// go on in between is a task of this thread: it renews a lease, or repeats a message that a peer
// still needs.
//
// The thread runs on the CPUs near the devices that its tasks work for, if the thread that started
// it may run there. Otherwise it runs on the CPUs of that thread.
//
// States of a task: scheduled (in due_), running (running_), or not known here. schedule() adds a
// task. run() changes scheduled to running and back. cancel() removes it, and waits while it runs.
// mutex_ guards all members, and is not held while a task runs.
//
// Threads: any thread may call, except the housekeeper's own: a task may not cancel itself or drop
// the last reference.
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
  // The housekeeper calls it, never twice at a time. It returns the time of the next call, by
  // SteadyClock. Other tasks wait meanwhile, so it takes two seconds at most.
  virtual uint64_t run_due(uint64_t now_ns) = 0;
};

class Housekeeper {
 public:
  // `does` says what the caller needs the thread for, in the error if no thread can start. `near`
  // are the CPUs near the caller's NICs; empty: not known.
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
  BackgroundTask* running_ = nullptr;             // it is not in due_ while it runs
  bool ending_ = false;
  bool launched_ = false;
  pthread_t thread_{};
  CpuSet allowed_;  // where the thread that started this one may run
  CpuSet near_;     // only get() changes it, one thread at a time
};

}  // namespace slime
