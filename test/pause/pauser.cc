#include "test/pause/pauser.h"

#include <sys/ptrace.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"

namespace slime::pauser {
namespace {

constexpr uint64_t kSecond = 1000000000;
// A Ctrl-C may arrive from the terminal and from timeout(1) as well: one request.
constexpr uint64_t kSameRequest = kSecond;
constexpr uint64_t kEndGrace = 5 * kSecond;
// A lost SIGCHLD costs no more than this.
constexpr uint64_t kLongestWait = kSecond / 20;
// However many threads begin and end, the time of the others must not be forgotten.
constexpr int kEventsAtOnce = 256;

uint64_t now_ns() { return SteadyClock::instance().now_ns(); }

bool stops_a_process(int signal) {
  return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

}  // namespace

Pauser::Pauser(const Options& options, pid_t root, const sigset_t& signals)
    : options_(options), root_(root), signals_(signals), random_(options.seed) {
  threads_.add(root);
  next_stop_ns_ = now_ns() + draw_gap_ns();
}

int Pauser::run() {
  while (take_events()) {
    const uint64_t now = now_ns();
    release_due(now);
    stop_one_if_due(now);
    kill_if_due(now);
    wait_for_signal(now);
  }
  return status_;
}

Summary Pauser::summary() const {
  Summary summary = summary_;
  summary.threads_seen = threads_.seen();
  return summary;
}

// False: nobody is left.
bool Pauser::take_events() {
  more_events_ = true;
  for (int i = 0; i < kEventsAtOnce; ++i) {
    int status = 0;
    const pid_t tid = waitpid(-1, &status, __WALL | WNOHANG);
    if (tid < 0 && errno == ECHILD) return false;
    if (tid <= 0) {
      more_events_ = false;
      break;
    }
    on_event(tid, status);
  }
  return true;
}

void Pauser::on_event(pid_t tid, int status) {
  if (WIFSTOPPED(status)) {
    on_stop(tid, WSTOPSIG(status), status >> 16);
    return;
  }
  threads_.remove(tid);
  if (tid == root_) on_root_end(status);
}

void Pauser::on_root_end(int status) {
  status_ = status;
  kill_all();
}

// Threads are added by their own first stop: what a parent tells of a child may come after its end.
void Pauser::on_stop(pid_t tid, int signal, int event) {
  Thread* thread = threads_.add(tid);
  if (event == PTRACE_EVENT_EXEC) {
    unsigned long former = 0;
    const bool known = ptrace(PTRACE_GETEVENTMSG, tid, nullptr, &former) == 0;
    thread = threads_.take_over(tid, known ? static_cast<pid_t>(former) : tid);
  }
  if (killing_) kill(tid, SIGKILL);
  // Only of a signal that is about to be delivered is `signal` the thread's to see.
  thread->signal = event == 0 ? signal : 0;
  thread->listens = event == PTRACE_EVENT_STOP && stops_a_process(signal);
  // An interrupt and another stop are one, so this may be any.
  if (thread->state == Thread::State::kAsked && pausing_) {
    hold(thread);
  } else {
    let_go(thread);
  }
}

void Pauser::hold(Thread* thread) {
  thread->state = Thread::State::kHeld;
  thread->stopped_ns = now_ns();
  releases_.push({thread->stopped_ns + thread->length_ns, thread->serial, thread->tid});
  ++summary_.stops;
  if (!thread->was_held) ++summary_.threads_stopped;
  thread->was_held = true;
}

// Fails only where the thread has been killed in between; its end is an event of its own.
void Pauser::let_go(Thread* thread) {
  if (thread->state == Thread::State::kHeld) {
    summary_.longest_ns = std::max(summary_.longest_ns, now_ns() - thread->stopped_ns);
  }
  thread->state = thread->listens ? Thread::State::kListening : Thread::State::kRunning;
  const auto request = thread->listens ? PTRACE_LISTEN : PTRACE_CONT;
  (void)ptrace(request, thread->tid, nullptr, static_cast<long>(thread->signal));
}

void Pauser::release_due(uint64_t now) {
  while (!releases_.empty() && releases_.top().at_ns <= now) {
    const Release due = releases_.top();
    releases_.pop();
    Thread* const thread = threads_.find(due.tid);
    const bool same = thread != nullptr && thread->serial == due.serial;
    if (same && thread->state == Thread::State::kHeld) let_go(thread);
  }
}

void Pauser::stop_one_if_due(uint64_t now) {
  if (!pausing_ || now < next_stop_ns_) return;
  next_stop_ns_ = now + draw_gap_ns();
  Thread* const thread = threads_.choose(random_);
  if (thread == nullptr) return;
  std::uniform_real_distribution<double> length_ns(0, options_.longest_s * 1e9);
  thread->length_ns = static_cast<uint64_t>(length_ns(random_));
  if (ptrace(PTRACE_INTERRUPT, thread->tid, nullptr, nullptr) != 0) return;
  thread->state = Thread::State::kAsked;
}

// Stops come one by one and in crowds, as those of a busy machine do.
uint64_t Pauser::draw_gap_ns() {
  std::exponential_distribution<double> gap_s(options_.rate);
  return static_cast<uint64_t>(gap_s(random_) * 1e9);
}

void Pauser::wait_for_signal(uint64_t now) {
  uint64_t until = now + kLongestWait;
  if (pausing_) until = std::min(until, next_stop_ns_);
  if (!releases_.empty()) until = std::min(until, releases_.top().at_ns);
  const uint64_t wait_ns = until > now && !more_events_ ? until - now : 0;
  const timespec timeout{.tv_sec = static_cast<time_t>(wait_ns / kSecond),
                         .tv_nsec = static_cast<long>(wait_ns % kSecond)};
  const int signal = sigtimedwait(&signals_, nullptr, &timeout);
  if (signal > 0 && signal != SIGCHLD) on_end_request(signal, now);
}

void Pauser::on_end_request(int signal, uint64_t now) {
  if (asked_to_end_ns_ == 0) {
    asked_to_end_ns_ = now;
    end_pauses();
    kill(-root_, signal);
  } else if (now >= asked_to_end_ns_ + kSameRequest) {
    kill_all();
  }
}

void Pauser::kill_if_due(uint64_t now) {
  if (asked_to_end_ns_ != 0 && !killing_ && now >= asked_to_end_ns_ + kEndGrace) kill_all();
}

void Pauser::end_pauses() {
  pausing_ = false;
  for (Thread& thread : threads_.all()) {
    if (thread.state == Thread::State::kHeld) let_go(&thread);
  }
}

// With those that begin meanwhile (on_stop): nobody is left when run returns.
void Pauser::kill_all() {
  killing_ = true;
  end_pauses();
  for (const Thread& thread : threads_.all()) kill(thread.tid, SIGKILL);
}

}  // namespace slime::pauser
