#include "engine/thread_progress.h"

#include <algorithm>
#include <list>
#include <mutex>

namespace slime {
namespace {

// A caller that calls its comms by turns, as NCCL does, moves them itself, and achieves something
// before this many calls.
constexpr int32_t kPatience = 64;
constexpr int32_t kPatiencePerComm = 16;

}  // namespace

// The lists of all threads that have comms.
class ThreadLists {
 public:
  static ThreadLists& get() {
    static ThreadLists* const lists = new ThreadLists;  // never destroyed: threads outlive main
    return *lists;
  }

  ThreadProgress::List& of_this_thread() {
    if (ThreadProgress::List* const mine = find(pthread_self())) return *mine;
    const auto unused = std::ranges::find(lists_, 0, &ThreadProgress::List::size);
    ThreadProgress::List& list = unused == lists_.end() ? lists_.emplace_back() : *unused;
    list.thread.store(pthread_self(), std::memory_order_relaxed);
    if (has_key_) (void)pthread_setspecific(key_, this);  // any value: see at_thread_end
    return list;
  }

  std::mutex mutex;

 private:
  ThreadLists() : has_key_(pthread_key_create(&key_, at_thread_end) == 0) {}

  // The next thread may get the same pthread_t.
  static void at_thread_end(void*) {
    ThreadLists& lists = get();
    const std::lock_guard lock(lists.mutex);
    ThreadProgress::List* const list = lists.find(pthread_self());
    while (list != nullptr && list->size > 0) list->first->unlink();
  }

  ThreadProgress::List* find(pthread_t thread) {
    const auto found = std::ranges::find_if(lists_, [thread](const auto& list) {
      return list.size > 0 && pthread_equal(list.thread.load(std::memory_order_relaxed), thread);
    });
    return found == lists_.end() ? nullptr : &*found;
  }

  // Empty ones are used again and never freed: another thread's enter() may be looking at one.
  std::list<ThreadProgress::List> lists_;
  pthread_key_t key_ = {};
  const bool has_key_;
};

void ThreadProgress::join() {
  ThreadLists& lists = ThreadLists::get();
  const std::lock_guard lock(lists.mutex);
  unlink();
  List& list = lists.of_this_thread();
  list_.store(&list, std::memory_order_relaxed);
  next_ = list.first;
  if (next_ != nullptr) next_->previous_ = this;
  list.first = this;
  ++list.size;
  list.full_patience = kPatience + kPatiencePerComm * list.size;
}

void ThreadProgress::leave() {
  const std::lock_guard lock(ThreadLists::get().mutex);
  unlink();
}

void ThreadProgress::unlink() {
  List* const list = own_list();
  if (list == nullptr) return;
  (previous_ != nullptr ? previous_->next_ : list->first) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
  --list->size;
  list_.store(nullptr, std::memory_order_relaxed);
  next_ = previous_ = nullptr;
}

void ThreadProgress::move_all() {
  achieved();
  const std::unique_lock lock(ThreadLists::get().mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;  // another thread opens or closes a comm: the next time, then
  for (ThreadProgress* comm = own_list()->first; comm != nullptr; comm = comm->next_) {
    if (comm->has_work()) comm->advance();
  }
}

}  // namespace slime
