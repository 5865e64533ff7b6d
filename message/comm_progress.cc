#include "message/comm_progress.h"

#include <sched.h>

#include <algorithm>
#include <list>
#include <mutex>

#include "base/check.h"
#include "base/log.h"
#include "base/mutex.h"

namespace slime {
namespace {

// The number of calls without progress after which all comms of the thread advance. A caller that
// calls its comms by turns, as NCCL does, makes progress before that.
constexpr int32_t kAllowedCalls = 64;
constexpr int32_t kAllowedCallsPerComm = 16;
constexpr uint64_t kIdleIntervalNs = 100'000'000;  // between two turns of an idle comm

}  // namespace

// The lists of all threads that have comms. A list belongs to a thread while it is not empty. Its
// mutex guards all lists; atomics are for enter(), which reads a list without it.
class ThreadLists {
 public:
  static ThreadLists& get() {
    static ThreadLists* const lists = new ThreadLists;  // never destroyed: threads outlive main
    return *lists;
  }

  CommProgress::List& of_this_thread() {
    SLIME_CHECK(mutex.held());
    if (CommProgress::List* const mine = find(CommProgress::this_thread())) return *mine;
    const auto unused = std::ranges::find(lists_, 0, &CommProgress::List::size);
    CommProgress::List& list = unused == lists_.end() ? lists_.emplace_back() : *unused;
    list.thread.store(CommProgress::this_thread(), std::memory_order_relaxed);
    if (has_key_) (void)pthread_setspecific(key_, this);  // any value: see at_thread_end
    return list;
  }

  Mutex mutex;

 private:
  ThreadLists() : has_key_(pthread_key_create(&key_, at_thread_end) == 0) {}

  // Empties the list of a thread that ends, because the next thread may get the same identity.
  static void at_thread_end(void*) {
    ThreadLists& lists = get();
    const std::lock_guard lock(lists.mutex);
    CommProgress::List* const list = lists.find(CommProgress::this_thread());
    while (list != nullptr && list->size > 0) list->first->unlink();
  }

  CommProgress::List* find(uintptr_t thread) {
    const auto found = std::ranges::find_if(lists_, [thread](const auto& list) {
      return list.size > 0 && list.thread.load(std::memory_order_relaxed) == thread;
    });
    return found == lists_.end() ? nullptr : &*found;
  }

  // Empty lists are used again and never freed: another thread's enter() may be reading one.
  std::list<CommProgress::List> lists_;
  pthread_key_t key_ = {};
  const bool has_key_;
};

void CommProgress::join() {
  ThreadLists& lists = ThreadLists::get();
  const std::lock_guard lock(lists.mutex);
  unlink();
  List& list = lists.of_this_thread();
  list_.store(&list, std::memory_order_relaxed);
  next_ = list.first;
  if (next_ != nullptr) next_->previous_ = this;
  list.first = this;
  ++list.size;
  list.allowed_calls = kAllowedCalls + kAllowedCallsPerComm * list.size;
}

void CommProgress::unlink() {
  SLIME_CHECK(ThreadLists::get().mutex.held());
  List* const list = own_list();
  if (list == nullptr) return;
  SLIME_CHECK(list->size > 0 && list->first != nullptr);
  (previous_ != nullptr ? previous_->next_ : list->first) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
  --list->size;
  list_.store(nullptr, std::memory_order_relaxed);
  next_ = previous_ = nullptr;
}

void CommProgress::leave() {
  if (keeper_ != nullptr) keeper_->cancel(this);
  const std::lock_guard lock(ThreadLists::get().mutex);
  unlink();
}

void CommProgress::advance_all() {
  achieved();
  const std::unique_lock lock(ThreadLists::get().mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;  // another thread has the lists: a later call tries again
  for (CommProgress* comm = own_list()->first; comm != nullptr; comm = comm->next_) {
    comm->advance_if_working();
  }
}

// Advances a comm of this thread. The thread may be inside a call of this comm.
void CommProgress::advance_if_working() {
  // Acquire: another thread may be in enter() of this comm, and wait in join() for the mutex.
  const bool called = state_.load(std::memory_order_acquire) == State::kCalled;
  const BackgroundTurn turn(*this);
  if ((called || turn.began()) && (has_requests() || has_work())) advance();
}

// If the housekeeper cannot start, everything else works, so this warns and returns no error.
void CommProgress::progress_when_idle(size_t turns, const CpuSet& near) {
  static std::atomic<bool> warned = false;
  auto keeper = Housekeeper::get("looks after idle communicators of several rails", near);
  if (!keeper) {
    if (!warned.exchange(true)) {
      SLIME_WARN(
          "%s; where a rail dies while a communicator of this process is idle, its peers may wait "
          "until its next operation",
          keeper.error().what.c_str());
    }
    return;
  }
  turns_ = turns;
  keeper_ = std::move(*keeper);
  set(State::kIdle);
  keeper_->schedule(this, 0);
}

// Called by the housekeeper.
uint64_t CommProgress::run_due(uint64_t now_ns) {
  const BackgroundTurn turn(*this);
  for (size_t i = 0; turn.began() && i < turns_; ++i) advance();
  return now_ns + kIdleIntervalNs;
}

bool CommProgress::take_idle(State state) {
  State idle = State::kIdle;
  return state_.compare_exchange_strong(idle, state, std::memory_order_acquire,
                                        std::memory_order_relaxed);
}

// Spins while another thread advances the comm: some microseconds for one poll of its rails,
// milliseconds if it fences one.
void CommProgress::take_back() {
  while (!take_idle(State::kCalled)) sched_yield();
}

}  // namespace slime
