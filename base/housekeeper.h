// The one thread of its own that the plugin may have in a process. It exists while something needs
// it: a CollNet communicator, or a link that can lose a rail and carry on.
//
// NCCL calls us only while it waits for an operation, but a training step may be long. Leases run
// out meanwhile; and a rank that has all its results may be the only one that has what another rank
// still needs: a result that was lost on the way, or the word which stripes of a dead rail arrived.
//
// It runs on the CPUs near the NICs that it works for, as far as the thread that it was made by may
// run there; else where that one runs.
//
// Threads: any but its own, which neither releases a chore that it attends to nor drops the last
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

class Chore {
 public:
  virtual ~Chore() = default;
  // Called by the housekeeper, never twice at a time. Returns when to call again, in the time of
  // SteadyClock. Others wait as long as this takes: two seconds at most.
  virtual uint64_t attend(uint64_t now_ns) = 0;
};

class Housekeeper {
 public:
  // `does`: what the caller needs it for, for the error where no thread can be had. `near`: the
  // CPUs near the caller's NICs; empty: not known.
  static Result<std::shared_ptr<Housekeeper>> get(const char* does, const CpuSet& near);
  ~Housekeeper();

  void take(Chore* chore, uint64_t due_ns);
  void release(Chore* chore);  // waits while it is attended to

 private:
  Housekeeper() = default;
  Result<void> launch(const char* does);
  void stay_near(const CpuSet& near);
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<uint64_t, Chore*> due_;  // by time
  Chore* attended_ = nullptr;            // not in due_ meanwhile
  bool ending_ = false;
  bool launched_ = false;
  pthread_t thread_{};
  CpuSet allowed_;  // to the thread that made it
  CpuSet near_;     // changed by get() only, by one thread at a time
};

}  // namespace slime
