// Progress of all comms of a thread, whichever of them the caller waits for.
//
// Posting is lazy, and a comm moves only inside calls. A caller may wait at one comm for what its
// peer can send only after it has got something that still lies in the queue of another comm: two
// ranks that post receives, then repeat isend until it is taken, and call test later. So when the
// calls of a thread have achieved nothing for a while, each comm of this thread that has work gets
// its progress.
//
// States: a comm belongs to no thread, or to the thread that called it last.
// Threads: enter() and waited() come from the thread that calls the comm, leave() from any. A list
// is walked and changed only under one mutex. A thread walks only its own list, and a comm that
// another thread calls joins the list of that thread first: so nobody moves a comm beside its
// caller. A thread is known by its pthread_t, not by a thread_local, which would make the plugin
// need the dynamic loader as a library. The list of a thread that has ended waits for a thread
// that gets the same pthread_t, or for its comms to leave it.
#pragma once

#include <pthread.h>

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
    if (list_ == nullptr || !pthread_equal(list_->thread, pthread_self())) join();
  }
  // At the end of a call that says "not now" or "not done".
  void waited() {
    if (--list_->patience <= 0) move_all();
  }
  // In the destructor of the most derived class, before its members are gone.
  void leave();

 private:
  friend class ThreadLists;

  // Works that are queued or under way, or a request of the caller's that is open.
  virtual bool has_work() const = 0;
  virtual void advance() = 0;

  struct List {
    pthread_t thread = {};
    ThreadProgress* first = nullptr;
    int32_t size = 0;
    int32_t patience = 0;  // calls that may achieve nothing until all comms are moved
  };
  void join();
  void move_all();
  void unlink();

  List* list_ = nullptr;
  ThreadProgress* next_ = nullptr;
  ThreadProgress* previous_ = nullptr;
};

}  // namespace slime
