#include "engine/thread_progress.h"

#include <map>
#include <mutex>

namespace slime {
namespace {

// A caller that calls its comms by turns, as NCCL does, moves them itself. So all comms are moved
// rarely enough to cost it nothing that can be measured.
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

  std::mutex mutex;
  std::map<pthread_t, ThreadProgress::List> of;  // nodes do not move
};

void ThreadProgress::join() {
  ThreadLists& lists = ThreadLists::get();
  const std::lock_guard lock(lists.mutex);
  unlink();
  const pthread_t self = pthread_self();
  list_ = &lists.of[self];
  list_->thread = self;
  next_ = list_->first;
  if (next_ != nullptr) next_->previous_ = this;
  list_->first = this;
  ++list_->size;
}

void ThreadProgress::leave() {
  const std::lock_guard lock(ThreadLists::get().mutex);
  unlink();
}

void ThreadProgress::unlink() {
  if (list_ == nullptr) return;
  (previous_ != nullptr ? previous_->next_ : list_->first) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
  if (--list_->size == 0) ThreadLists::get().of.erase(list_->thread);
  list_ = nullptr;
  next_ = previous_ = nullptr;
}

void ThreadProgress::move_all() {
  List& list = *list_;
  list.patience = kPatience;
  const std::unique_lock lock(ThreadLists::get().mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;  // another thread opens or closes a comm: the next time, then
  list.patience += kPatiencePerComm * list.size;
  for (ThreadProgress* comm = list.first; comm != nullptr; comm = comm->next_) {
    if (comm->has_work()) comm->advance();
  }
}

}  // namespace slime
