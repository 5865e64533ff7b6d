#include "plugin/state.h"

#include <unistd.h>

#include <utility>

namespace slime::plugin {

State::State(State* parent) : pid_(getpid()), parent_(parent) {}

// The state is never destroyed: at exit() other threads of NCCL may still use it.
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

Devices* State::devices() const {
  const std::lock_guard lock(mutex_);
  return devices_.get();
}

std::shared_ptr<const TunerPolicy> State::tuner_policy() const {
  const std::lock_guard lock(mutex_);
  return tuner_policy_;
}

// A context without a class is CollNet's own: then the class is that of another context of the same
// communicator.
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

// NCCL gets the raw pointer; the map owns the comm until close() or close_everything().
OpenComm* State::adopt(std::unique_ptr<OpenComm> comm) {
  OpenComm* const raw = comm.get();
  const bool is_link = raw->is_link();
  {
    const std::lock_guard lock(mutex_);
    comms_.emplace(raw, std::move(comm));
  }
  if (is_link) {
    open_links_.fetch_add(1);
    stats_.mark_used();
  }
  return raw;
}

OpenComm* State::find(const void* comm, CommKind kind) const {
  const std::lock_guard lock(mutex_);
  const auto found = comms_.find(comm);
  return found == comms_.end() || found->second->kind != kind ? nullptr : found->second.get();
}

// The comm is taken out of the map under the mutex and destroyed without it. The counters are
// reported when the last link has closed, or a CollNet communicator while no link is open.
bool State::close(const void* comm, CommKind kind) {
  std::unique_ptr<OpenComm> closed;
  {
    const std::lock_guard lock(mutex_);
    const auto found = comms_.find(comm);
    if (found == comms_.end() || found->second->kind != kind) return false;
    closed = std::move(found->second);
    comms_.erase(found);
    if (closed->session) stats_.keep(closed->session->report());
  }
  const bool was_link = closed->is_link();
  closed.reset();
  const bool last_link = was_link && open_links_.fetch_sub(1) == 1;
  const bool session_without_links = kind == CommKind::kColl && open_links_ == 0;
  if (last_link || session_without_links) report();
  return true;
}

void State::report() {
  const std::lock_guard lock(mutex_);
  if (!devices_) return;
  std::vector<WorkerReport> open;
  for (const auto& [key, comm] : comms_) {
    if (comm->session) open.push_back(comm->session->report());
  }
  stats_.report(*devices_, open);
}

// Walks all comms: this runs once for each connection that fails.
bool State::first_failure_of(const Comm& link) {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, comm] : comms_) {
    if (comm->link() == &link) return !std::exchange(comm->failure_logged, true);
  }
  return true;
}

// A connect keeps its number for all of its retries.
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
