// Progress of a comm outside its own calls: in calls of other comms of the same thread and, while
// it has no request open, in the housekeeper's thread.
//
// Calls of other comms. Posting is lazy. A caller may wait at one comm for a message that its peer
// sends only after it has received a message that is still queued at another comm of the caller.
// Example: two ranks post receives, then repeat isend until it is taken, and call test later. So
// when the calls of a thread have made no progress for a while, they advance every comm of this
// thread that has work.
//
// The housekeeper. NCCL does not call a comm without open requests, but the peer may still need it.
// When a rail dies before a confirmation has arrived, the sender's request is not done until the
// receiver has told it which stripes arrived. When a rail dies with small messages, whose requests
// are done already, the sender must send them again. NCCL's progress thread sleeps meanwhile. So
// the housekeeper advances an idle comm ten times a second, if its link can fail over.
//
// States
//   kCalled        a call is going on, or requests are open: only the caller's thread advances it
//   kIdle          no thread advances it
//   kInBackground  the housekeeper advances it, or its thread does in a call of another comm
// kCalled becomes kIdle at the end of a call that leaves no request open, and the next call waits
// until it is kIdle. A comm that the housekeeper does not advance is always kCalled.
//
// Threads: the thread that calls the comm uses Call, achieved() and waited(); any thread may call
// leave(). One mutex guards all lists. A thread walks only its own list, and a comm that another
// thread calls first joins the list of that thread. So no thread advances a comm while its caller
// does. Comms of a thread that has ended belong to no thread.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/housekeeper.h"

namespace slime {

class CommProgress : protected BackgroundTask {
 public:
  CommProgress() = default;
  CommProgress(const CommProgress&) = delete;
  CommProgress& operator=(const CommProgress&) = delete;

 protected:
  ~CommProgress() override = default;

  // Lives from the beginning to the end of each public call of a comm that touches its link.
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

  // A request has begun or finished: the count of calls without progress starts again.
  void achieved() { own_list()->calls_left = own_list()->allowed_calls; }
  // Called at the end of a call that returns "not now" or "not done".
  void waited() {
    if (--own_list()->calls_left <= 0) advance_all();
  }
  // From now on the housekeeper advances this comm while it is idle. Call it at the end of the most
  // derived constructor. `turns` calls of advance() poll all rails; `near` are the CPUs near them.
  void progress_when_idle(size_t turns, const CpuSet& near);
  // Call it in the destructor of the most derived class, while its members still exist.
  void leave();

 private:
  friend class ThreadLists;
  enum class State : uint8_t { kCalled, kIdle, kInBackground };

  virtual bool has_requests() const = 0;  // the caller has open requests
  virtual bool has_work() const = 0;      // works are under way, or rails may return
  virtual void advance() = 0;

  struct List {
    std::atomic<uintptr_t> thread = 0;
    CommProgress* first = nullptr;
    int32_t size = 0;
    int32_t allowed_calls = 0;
    int32_t calls_left = 0;  // calls without progress until all comms advance
  };

  void enter() {
    if (state_.load(std::memory_order_relaxed) != State::kCalled) take_back();
    const List* const list = own_list();
    const bool mine =
        list != nullptr && list->thread.load(std::memory_order_relaxed) == this_thread();
    if (!mine) join();
  }
  // Identifies a thread while it lives. GCC reads it in place; pthread_self() is a call into libc.
  static uintptr_t this_thread() {
#if !defined(__clang__) && (defined(__x86_64__) || defined(__aarch64__))
    return reinterpret_cast<uintptr_t>(__builtin_thread_pointer());
#else
    return static_cast<uintptr_t>(pthread_self());
#endif
  }
  void join();
  void unlink();
  void advance_all();
  void advance_if_working();

  // Makes an idle comm kInBackground for the lifetime of this object. began(): the comm was idle.
  class BackgroundTurn {
   public:
    explicit BackgroundTurn(CommProgress& comm)
        : comm_(comm), began_(comm.take_idle(State::kInBackground)) {}
    ~BackgroundTurn() {
      if (began_) comm_.set(State::kIdle);
    }
    BackgroundTurn(const BackgroundTurn&) = delete;
    BackgroundTurn& operator=(const BackgroundTurn&) = delete;
    bool began() const { return began_; }

   private:
    CommProgress& comm_;
    const bool began_;
  };

  uint64_t run_due(uint64_t now_ns) override;
  void take_back();
  bool take_idle(State state);  // true: the comm was idle, and is in this state now
  void set(State state) { state_.store(state, std::memory_order_release); }

  List* own_list() const { return list_.load(std::memory_order_relaxed); }

  std::atomic<List*> list_ = nullptr;
  CommProgress* next_ = nullptr;
  CommProgress* previous_ = nullptr;

  std::atomic<State> state_ = State::kCalled;
  size_t turns_ = 0;
  std::shared_ptr<Housekeeper> keeper_;  // nullptr: only calls advance this comm
};

}  // namespace slime
