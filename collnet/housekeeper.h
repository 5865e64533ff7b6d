// The one thread of the process that CollNet has. It exists while something needs it.
//
// NCCL calls us only while it waits for an operation. But a training step may be long, and leases
// run out; and a rank that has all its results may be the only one that still has a result which
// another rank lacks. So somebody must be at home.
#pragma once

#include <pthread.h>
#include <slime/result.h>

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>

namespace slime {

class Chore {
 public:
  virtual ~Chore() = default;
  // Called by the housekeeper, never twice at a time. Answers when to come again. Others wait as
  // long as this takes: two seconds at most.
  virtual uint64_t attend(uint64_t now_ns) = 0;
};

class Housekeeper {
 public:
  // Fails if no thread can be had.
  static Result<std::shared_ptr<Housekeeper>> get();
  ~Housekeeper();

  void take(Chore* chore, uint64_t due_ns);
  void release(Chore* chore);  // waits while it is attended to

 private:
  struct Entry {
    Chore* chore;
    uint64_t due_ns;
  };

  Housekeeper() = default;
  Result<void> launch();
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Entry> entries_;
  Chore* attended_ = nullptr;
  bool ending_ = false;
  bool launched_ = false;
  pthread_t thread_{};
};

}  // namespace slime
