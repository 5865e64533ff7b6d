// The one thread of the process that CollNet has. It exists while something needs it.
//
// NCCL calls us only while it waits for an operation. But a training step may be long, and leases
// run out; and a rank that has all its results may be the only one that still has a result which
// another rank lacks. So somebody must be at home.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

namespace slime {

class Chore {
 public:
  virtual ~Chore() = default;
  // Called by the housekeeper, never twice at a time. Answers when to come again. May wait for a
  // second, not longer.
  virtual uint64_t attend(uint64_t now_ns) = 0;
};

class Housekeeper {
 public:
  static std::shared_ptr<Housekeeper> get();
  ~Housekeeper();

  void take(Chore* chore, uint64_t due_ns);
  void release(Chore* chore);  // waits while it is attended to

 private:
  struct Entry {
    Chore* chore;
    uint64_t due_ns;
  };

  Housekeeper();
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Entry> entries_;
  Chore* attended_ = nullptr;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace slime
