// Progress of all comms of a thread, whichever of them the caller waits for.
//
// Posting is lazy, and a comm moves only inside calls. A caller may wait at one comm for what its
// peer can send only after it has got something that still lies in the queue of another comm: two
// ranks that post receives, then repeat isend until it is taken, and call test later. So when the
// calls of a thread have achieved nothing for a while, each comm of this thread that has work gets
// its progress. Every public call of a comm that touches its link begins with enter().
//
// States: a comm belongs to no thread, or to the thread that called it last.
// Threads: enter() and waited() come from the thread that calls the comm, leave() from any. A list
// is walked and changed only under one mutex. A thread walks only its own list, and a comm that
// another thread calls joins the list of that thread first: so nobody moves a comm beside its
// caller. A thread is known by its pthread_t, not by a thread_local, which would make the plugin
// need the dynamic loader as a library; comms of a thread that ends belong to no thread then.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace slime {

class ThreadProgress {
 public:
  ThreadProgress() = default;
  ThreadProgress(const ThreadProgress&) = delete;
  ThreadProgress& operator=(const ThreadProgress&) = delete;

 protected:
  ~ThreadProgress() = default;

  // At the beginning of each call.
  void enter() {
    const List* const list = own_list();
    const bool mine = list != nullptr &&
                      pthread_equal(list->thread.load(std::memory_order_relaxed), pthread_self());
    if (!mine) join();
  }
  // Something was begun or finished: the thread does not wait in vain.
  void achieved() { own_list()->patience = own_list()->full_patience; }
  // At the end of a call that says "not now" or "not done".
  void waited() {
    if (--own_list()->patience <= 0) move_all();
  }
  // In the destructor of the most derived class, before its members are gone.
  void leave();

 private:
  friend class ThreadLists;

  // Works that are queued or under way, or a request of the caller's that is open.
  virtual bool has_work() const = 0;
  virtual void advance() = 0;

  struct List {
    std::atomic<pthread_t> thread = pthread_t{};
    ThreadProgress* first = nullptr;
    int32_t size = 0;
    int32_t full_patience = 0;
    int32_t patience = 0;  // calls that may still achieve nothing until all comms are moved
  };
  void join();
  void move_all();
  void unlink();

  List* own_list() const { return list_.load(std::memory_order_relaxed); }

  std::atomic<List*> list_ = nullptr;
  ThreadProgress* next_ = nullptr;
  ThreadProgress* previous_ = nullptr;
};

}  // namespace slime
