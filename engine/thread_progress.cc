#include "engine/thread_progress.h"

#include <mutex>

namespace slime {
namespace {

std::mutex& lists_mutex() {
  static std::mutex* const mutex = new std::mutex;  // never destroyed: threads end after main
  return *mutex;
}

// A caller that calls its comms by turns, as NCCL does, moves them itself. So all comms are moved
// rarely enough to cost it nothing that can be measured.
constexpr int32_t kPatience = 64;
constexpr int32_t kPatiencePerComm = 16;

}  // namespace

void ThreadProgress::join() {
  const std::lock_guard lock(lists_mutex());
  unlink();
  list_ = &own_list();
  next_ = list_->first;
  if (next_ != nullptr) next_->previous_ = this;
  list_->first = this;
  ++list_->size;
}

void ThreadProgress::leave() {
  const std::lock_guard lock(lists_mutex());
  unlink();
}

void ThreadProgress::unlink() {
  if (list_ == nullptr) return;
  (previous_ != nullptr ? previous_->next_ : list_->first) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
  --list_->size;
  list_ = nullptr;
  next_ = previous_ = nullptr;
}

void ThreadProgress::move_all() {
  List& list = own_list();
  list.patience = kPatience;
  const std::unique_lock lock(lists_mutex(), std::try_to_lock);
  if (!lock.owns_lock()) return;  // another thread opens or closes a comm: the next time, then
  list.patience += kPatiencePerComm * list.size;
  for (ThreadProgress* comm = list.first; comm != nullptr; comm = comm->next_) {
    if (comm->has_work()) comm->advance();
  }
}

ThreadProgress::List::~List() {
  const std::lock_guard lock(lists_mutex());
  while (first != nullptr) first->unlink();
}

}  // namespace slime
