#include "test/pause/threads.h"

namespace slime::pauser {

Thread* Threads::find(pid_t tid) {
  const auto found = index_.find(tid);
  return found == index_.end() ? nullptr : &threads_[found->second];
}

Thread* Threads::add(pid_t tid) {
  if (Thread* const known = find(tid)) return known;
  index_[tid] = threads_.size();
  threads_.push_back({.tid = tid, .serial = ++serial_});
  return &threads_.back();
}

void Threads::remove(pid_t tid) {
  const auto found = index_.find(tid);
  if (found == index_.end()) return;
  const size_t place = found->second;
  index_.erase(found);
  if (place + 1 < threads_.size()) {
    threads_[place] = threads_.back();
    index_[threads_[place].tid] = place;
  }
  threads_.pop_back();
}

Thread* Threads::take_over(pid_t leader, pid_t former) {
  const Thread* const mover = former == leader ? nullptr : find(former);
  if (mover == nullptr) return add(leader);
  Thread moved = *mover;
  moved.tid = leader;
  remove(former);
  Thread* const place = add(leader);
  *place = moved;
  return place;
}

Thread* Threads::choose(std::mt19937_64& random) {
  constexpr int kDraws = 8;
  for (int i = 0; i < kDraws && !threads_.empty(); ++i) {
    std::uniform_int_distribution<size_t> any(0, threads_.size() - 1);
    Thread* const thread = &threads_[any(random)];
    if (thread->state == Thread::State::kRunning) return thread;
  }
  return nullptr;
}

}  // namespace slime::pauser
