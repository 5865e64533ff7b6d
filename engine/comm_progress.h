// Who moves a comm besides its own calls: the other calls of its thread and, while it has no
// request open, the housekeeper.
//
// The thread. Posting is lazy, and a caller may wait at one comm for what its peer can send only
// after it has got something that still lies in the queue of another comm: two ranks that post
// receives, then repeat isend until it is taken, and call test later. So when the calls of a thread
// have achieved nothing for a while, each comm of this thread that has work gets its progress.
//
// The housekeeper. A comm that has all it asked for is not called any more, but its peer may still
// need it. When a rail dies and takes a confirmation with it, the sender must learn what had
// arrived before its request is done; when it dies with small messages, which are done already, the
// sender must send them again. NCCL's progress thread sleeps meanwhile. So a comm whose link can
// fail over is looked at ten times a second while it is idle.
//
// States
//   kCalled    inside a call, or with requests open: only its caller moves it
//   kIdle      nobody moves it
//   kAttended  moved by the housekeeper, or by its thread while that waits at another comm
// kCalled becomes kIdle at the end of a call that leaves no request open, and the next call waits
// until it is kIdle. A comm that nobody attends to is always kCalled.
//
// Threads: Call and waited() come from the thread that calls the comm, leave() from any. A list is
// walked and changed only under one mutex. A thread walks only its own list, and a comm that
// another thread calls joins the list of that thread first: so nobody moves a comm beside its
// caller. A thread is known by its pthread_t, not by a thread_local, which would make the plugin
// need the dynamic loader as a library; comms of a thread that ends belong to no thread then.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/housekeeper.h"

namespace slime {

class CommProgress : protected Chore {
 public:
  CommProgress() = default;
  CommProgress(const CommProgress&) = delete;
  CommProgress& operator=(const CommProgress&) = delete;

 protected:
  ~CommProgress() override = default;

  // Each public call of a comm that touches its link, from its beginning to its end.
  class Call {
   public:
    explicit Call(CommProgress& comm) : comm_(comm) { comm_.enter(); }
    ~Call() {
      if (comm_.keeper_ != nullptr && !comm_.has_requests()) comm_.set(State::kIdle);
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    CommProgress& comm_;
  };

  // A request was begun or finished: the count of calls that achieve nothing starts again.
  void achieved() { own_list()->patience = own_list()->full_patience; }
  // At the end of a call that says "not now" or "not done".
  void waited() {
    if (--own_list()->patience <= 0) move_all();
  }
  // At the end of the most derived constructor. `turns` of advance() look at all rails, which the
  // CPUs `near` are near to.
  void attend_when_idle(size_t turns, const CpuSet& near);
  // In the destructor of the most derived class, before its members are gone.
  void leave();

 private:
  friend class ThreadLists;
  enum class State : uint8_t { kCalled, kIdle, kAttended };

  virtual bool has_requests() const = 0;  // of the caller's, open
  virtual bool has_work() const = 0;      // besides: works of ours, or rails that may return
  virtual void advance() = 0;

  struct List {
    std::atomic<pthread_t> thread = pthread_t{};
    CommProgress* first = nullptr;
    int32_t size = 0;
    int32_t full_patience = 0;
    int32_t patience = 0;  // calls that may still achieve nothing until all comms are moved
  };

  void enter() {
    if (state_.load(std::memory_order_relaxed) != State::kCalled) take_back();
    const List* const list = own_list();
    const bool mine = list != nullptr &&
                      pthread_equal(list->thread.load(std::memory_order_relaxed), pthread_self());
    if (!mine) join();
  }
  void join();
  void unlink();
  void move_all();
  void move_if_working();

  // kAttended while this lives, if the comm was idle.
  class Attendance {
   public:
    explicit Attendance(CommProgress& comm)
        : comm_(comm), began_(comm.take_idle(State::kAttended)) {}
    ~Attendance() {
      if (began_) comm_.set(State::kIdle);
    }
    Attendance(const Attendance&) = delete;
    Attendance& operator=(const Attendance&) = delete;
    bool began() const { return began_; }

   private:
    CommProgress& comm_;
    const bool began_;
  };

  uint64_t attend(uint64_t now_ns) override;
  void take_back();
  bool take_idle(State state);  // true: it was idle, and is in this state now
  void set(State state) { state_.store(state, std::memory_order_release); }

  List* own_list() const { return list_.load(std::memory_order_relaxed); }

  std::atomic<List*> list_ = nullptr;
  CommProgress* next_ = nullptr;
  CommProgress* previous_ = nullptr;

  std::atomic<State> state_ = State::kCalled;
  size_t turns_ = 0;
  std::shared_ptr<Housekeeper> keeper_;  // nullptr: nobody attends to this comm
};

}  // namespace slime
