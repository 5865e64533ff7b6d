#include "peer/engine/service.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <system_error>
#include <utility>

#include "base/clock.h"

namespace slime {
namespace {

// When a listener is readable and nobody can be accepted, as no descriptor is left.
constexpr timespec kPause{0, 1'000'000};

bool lower(std::atomic<uint64_t>& value, uint64_t to) {
  uint64_t before = value.load();
  while (to < before) {
    if (value.compare_exchange_weak(before, to)) return true;
  }
  return false;
}

}  // namespace

Result<std::unique_ptr<Service>> Service::open(ServiceHost& host, uint32_t thread,
                                               std::span<const int> listeners,
                                               const std::vector<Poller*>& pollers,
                                               double peer_timeout_s) {
  auto sleeper = Sleeper::open();
  if (!sleeper) return fail(std::move(sleeper.error()));
  for (const int listener : listeners) (*sleeper)->add(listener);
  for (Poller* poller : pollers) (void)(*sleeper)->add(*poller);
  const uint64_t look_ns = std::min(seconds_to_ns(peer_timeout_s) / 8, kLongestLookNs);
  return std::unique_ptr<Service>(new Service(host, thread, std::move(*sleeper), pollers, look_ns));
}

Result<void> Service::start() {
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return fail(system_error(error.code().value(),
                             "the engine's thread cannot start; raise the limit of threads "
                             "(ulimit -u, or pids.max of the container)"));
  }
  return {};
}

void Service::stop() {
  ending_ = true;
  sleeper_->wake();
  if (thread_.joinable()) thread_.join();
}

void Service::attend(std::shared_ptr<Peer> peer) {
  {
    const std::lock_guard lock(mutex_);
    attended_.push_back(std::move(peer));
  }
  sleeper_->wake();
}

void Service::run() {
  uint32_t turns = 0;
  while (!ending_) {
    const uint64_t now_ns = steady_now_ns();
    look(now_ns);
    if (turns == 0) take_named();
    const uint64_t served_ns = serve_due(now_ns);
    if (is_first()) host_.call_back();
    const uint64_t due_ns =
        std::min({served_ns, look_ns_.load(), greeting_.runs() ? accept_ns_ : UINT64_MAX});
    turns = due_ns <= now_ns ? (turns + 1) % kTurns : 0;
    if (due_ns > now_ns && sleeper_->wait(due_ns - now_ns)) {
      accept_ns_ = 0;
      called_ = true;
    }
  }
}

// Peers that connect, and those that rest.
void Service::look(uint64_t now_ns) {
  if (is_first() && now_ns >= accept_ns_) look_at_listeners(now_ns);
  if (now_ns < look_ns_) return;
  look_ns_ = now_ns + look_every_ns_;
  if (is_first()) lower(look_ns_, host_.end_overdue(now_ns));
  for (auto& peer : host_.peers(index_)) add(std::move(peer));
}

void Service::look_at_listeners(uint64_t now_ns) {
  bool came = false;
  const bool greets = host_.accept(&came);
  const bool answered = host_.answer_callers();
  const bool found = greets || answered || came;
  if (std::exchange(called_, false) && !found) ::nanosleep(&kPause, nullptr);
  if (!greets) greeting_.end();
  accept_ns_ = greets ? greeting_.next_ns(now_ns) : now_ns + kNowAndThenNs;
}

void Service::look_before(uint64_t at_ns) {
  if (lower(look_ns_, at_ns)) sleeper_->wake();
}

// Those that somebody has named.
void Service::take_named() {
  {
    const std::lock_guard lock(mutex_);
    for (auto& peer : attended_) {
      peer->polling().stop_relying();  // there is something to do now
      add(std::move(peer));
    }
    attended_.clear();
  }
  std::array<uint64_t, 64> tags;
  for (Poller* poller : pollers_) {
    const size_t count = poller->poll(tags);
    for (size_t i = 0; i < count; ++i) add(host_.peer_with_tag(tags[i]));
  }
}

void Service::add(std::shared_ptr<Peer> peer) {
  if (peer == nullptr) return;
  Due& due = due_[peer.get()];
  due.peer = std::move(peer);
  due.at_ns = 0;
}

// Returns when the next one is due.
uint64_t Service::serve_due(uint64_t now_ns) {
  uint64_t first_ns = UINT64_MAX;
  for (auto next = due_.begin(); next != due_.end();) {
    const auto one = next++;
    Due& due = one->second;
    if (due.at_ns <= now_ns) {
      const Peer::Next next_call = due.peer->serve(now_ns);
      if (next_call != Peer::Next::kSetUp && next_call != Peer::Next::kNow) due.set_up.end();
      switch (next_call) {
        case Peer::Next::kNow:
          due.at_ns = 0;
          break;
        case Peer::Next::kSetUp:
          due.at_ns = due.set_up.next_ns(now_ns);
          break;
        case Peer::Next::kSoon:
          due.at_ns = now_ns + kSoonNs;
          break;
        case Peer::Next::kPolledElsewhere:
          due.at_ns = now_ns + PollingThreads::kCheckNs;
          break;
        case Peer::Next::kNowAndThen:
          due.at_ns = now_ns + kNowAndThenNs;
          break;
        case Peer::Next::kWhenNamed:
          due_.erase(one);
          continue;
      }
    }
    first_ns = std::min(first_ns, due.at_ns);
  }
  return first_ns;
}

}  // namespace slime
