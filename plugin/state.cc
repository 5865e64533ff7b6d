#include "plugin/state.h"

#include <unistd.h>

namespace slime::plugin {

State::State(State* parent) : pid_(getpid()), parent_(parent) {}

// Never destroyed: at exit() other threads of NCCL may still be in here.
State& State::get() {
  static std::atomic<State*> instance{nullptr};
  State* current = instance.load(std::memory_order_acquire);
  const pid_t pid = getpid();
  while (current == nullptr || current->pid_ != pid) {
    auto fresh = std::unique_ptr<State>(new State(current));
    if (instance.compare_exchange_strong(current, fresh.get())) current = fresh.release();
  }
  return *current;
}

bool State::initialized() const {
  const std::lock_guard lock(mutex_);
  return initialized_;
}

Fabric* State::fabric() const {
  const std::lock_guard lock(mutex_);
  return fabric_.get();
}

std::shared_ptr<const TunerPolicy> State::tuner_policy() const {
  const std::lock_guard lock(mutex_);
  return tuner_policy_;
}

int State::traffic_class_of(const void* context) const {
  const std::lock_guard lock(mutex_);
  const auto found = contexts_.find(context);
  if (found == contexts_.end()) return nccl::kTrafficClassUndefined;
  if (found->second->traffic_class != nccl::kTrafficClassUndefined) {
    return found->second->traffic_class;
  }
  for (const auto& [key, other] : contexts_) {
    const bool same = other->comm_id == found->second->comm_id;
    if (same && other->traffic_class != nccl::kTrafficClassUndefined) return other->traffic_class;
  }
  return nccl::kTrafficClassUndefined;
}

NetObject* State::adopt(std::unique_ptr<NetObject> object) {
  NetObject* const raw = object.get();
  const bool is_comm = raw->is_comm();
  {
    const std::lock_guard lock(mutex_);
    objects_.emplace(raw, std::move(object));
  }
  if (is_comm) {
    open_comms_.fetch_add(1);
    stats_.mark_used();
  }
  return raw;
}

NetObject* State::find_listen(const void* object) const {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(object);
  if (found == objects_.end() || found->second->is_comm()) return nullptr;
  return found->second.get();
}

NetObject* State::find_comm(const void* object) const {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(object);
  if (found == objects_.end() || !found->second->is_comm()) return nullptr;
  return found->second.get();
}

bool State::close(const void* object, ObjectKind kind) {
  std::unique_ptr<NetObject> closed;
  {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(object);
    if (found == objects_.end() || found->second->kind != kind) return false;
    closed = std::move(found->second);
    objects_.erase(found);
  }
  const bool was_comm = closed->is_comm();
  closed.reset();  // outside the lock: closing makes system calls
  if (was_comm && open_comms_.fetch_sub(1) == 1) report();
  return true;
}

void State::report() {
  const std::lock_guard lock(mutex_);
  if (!fabric_) return;
  std::vector<WorkerReport> open;
  for (const auto& [key, coll] : colls_) {
    if (coll->session) open.push_back(coll->session->report());
  }
  stats_.report(*fabric_, open);
}

bool State::first_failure_of(const Comm& comm) {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, object] : objects_) {
    if (object->comm() != &comm) continue;
    const bool first = !object->failure_logged;
    object->failure_logged = true;
    return first;
  }
  return true;
}

CollObject* State::adopt(std::unique_ptr<CollObject> object) {
  CollObject* const raw = object.get();
  const std::lock_guard lock(mutex_);
  colls_.emplace(raw, std::move(object));
  return raw;
}

CollObject* State::find_coll(const void* object) const {
  const std::lock_guard lock(mutex_);
  const auto found = colls_.find(object);
  return found == colls_.end() ? nullptr : found->second.get();
}

bool State::close_coll(const void* object) {
  std::unique_ptr<CollObject> closed;
  {
    const std::lock_guard lock(mutex_);
    const auto found = colls_.find(object);
    if (found == colls_.end()) return false;
    closed = std::move(found->second);
    colls_.erase(found);
    if (closed->session) stats_.keep(closed->session->report());
  }
  const bool was_comm = closed->session != nullptr;
  closed.reset();  // outside the lock: it waits for the other members
  if (was_comm && open_comms_ == 0) report();
  return true;
}

uint64_t State::park(std::unique_ptr<PendingConnect> pending) {
  const std::lock_guard lock(mutex_);
  if (pending->attempt == 0) pending->attempt = ++last_attempt_;
  const uint64_t attempt = pending->attempt;
  pending_.emplace(attempt, std::move(pending));
  return attempt;
}

std::unique_ptr<PendingConnect> State::take(uint64_t attempt) {
  const std::lock_guard lock(mutex_);
  const auto found = pending_.find(attempt);
  if (found == pending_.end()) return nullptr;
  std::unique_ptr<PendingConnect> pending = std::move(found->second);
  pending_.erase(found);
  return pending;
}

}  // namespace slime::plugin
