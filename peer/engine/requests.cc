// The requests of an engine, and how they end.
#include <sched.h>

#include <algorithm>
#include <cinttypes>
#include <utility>

#include "base/clock.h"
#include "peer/engine/engine.h"

namespace slime {
namespace {

// A thread that sleeps is woken some 30 us late, so a thread that waits spins: for the bytes at
// this rate, for so long at most, and for each round trip.
constexpr uint64_t kBytesPerNs = 2, kMostMovedNs = 1'000'000;
uint64_t spin_ns(uint64_t bytes, uint32_t round_trips) {
  return std::min(bytes / kBytesPerNs, kMostMovedNs) + round_trips * Peer::kSpinNs;
}

// When it has spun for longer than a quick request takes, it yields after each poll: threads that
// spin on one core take turns.
constexpr uint64_t kQuickRoundTripNs = 12'000, kQuickBytesPerNs = 10, kMostQuickNs = 100'000;
uint64_t quick_ns(uint64_t bytes, uint32_t round_trips) {
  return std::min(bytes / kQuickBytesPerNs, kMostQuickNs) + round_trips * kQuickRoundTripNs;
}

}  // namespace

std::shared_ptr<PeerRequest> Engine::new_request(const Terms& terms) {
  auto request = memory_.make<PeerRequest>(&memory_);
  request->submitted_ns = steady_now_ns();
  const uint64_t limit =
      terms.deadline_ns != 0 ? terms.deadline_ns : seconds_to_ns(options_.default_deadline);
  request->set_due(request->submitted_ns + std::min(limit, kLongestWaitNs));
  return request;
}

Result<uint64_t> Engine::keep(const Submitted& submitted) {
  if (closing_) return fail(Status::kInvalid, "%s", kClosing);
  const uint64_t handle = requests_.add(memory_.make<Submitted>(submitted));
  if (handle == 0) return fail(Status::kNoMemory, "too many requests were not waited for");
  const Completion& completion = submitted.completion;
  if (completion.by == Completion::By::kTest) return handle;
  submitted.request->tell_end_to(&completions_, handle, completion.by == Completion::By::kCallback);
  return handle;
}

// Nobody tests it, perhaps. Pollers tell of what it waits for, and the service ends it when it is
// overdue.
void Engine::watch(const Submitted& submitted) {
  if (submitted.completion.by == Completion::By::kTest) return;
  if (submitted.peer != nullptr) {
    submitted.peer->polling().stop_relying();
    move(submitted);
  }
  services_.front()->look_before(submitted.request->due_ns());
}

Result<uint64_t> Engine::hand_over(std::shared_ptr<Peer> peer, std::shared_ptr<PeerRequest> request,
                                   const Terms& terms) {
  const auto is_letter = [](const Message& message) { return message.letter != nullptr; };
  request->round_trips = (request->pieces.empty() ? 0 : 1) + (request->messages.empty() ? 0 : 1) +
                         (std::ranges::any_of(request->messages, is_letter) ? 1 : 0);
  auto handle = keep({peer, request, terms.completion});
  if (!handle) return handle;
  if (terms.completion.by != Completion::By::kTest) peer->polling().stop_relying();
  if (terms.more) {
    const uint64_t due_ns = request->due_ns();
    peer->hand(std::move(request));
    // Behind it: the service looks at what was handed.
    services_[peer->thread()]->look_before(due_ns);
    if (peer->state() != Peer::State::kUp) attend(std::move(peer));  // removed, perhaps
  } else if (request->source != nullptr) {  // moving it takes long: not on the caller's time
    peer->hand(std::move(request));
    attend(std::move(peer));
  } else if (!peer->submit(std::move(request))) {
    attend(std::move(peer));
  }
  return handle;
}

void Engine::move(const Submitted& submitted) {
  if (submitted.peer != nullptr && !submitted.peer->try_move()) attend(submitted.peer);
}

// No peer ends what is posted when it is overdue.
void Engine::move_or_expire(const Submitted& submitted) {
  move(submitted);
  if (submitted.posted == Posted::kNowhere) return;
  if (steady_now_ns() < submitted.request->due_ns()) return;
  const bool counts = submitted.posted == Posted::kExpectations;
  end_posted(submitted,
             submitted.request->overdue(counts ? ", and not all immediates that it counts have come"
                                               : ", and no message with its tag has come"));
}

Result<void> Engine::cancel(uint64_t handle) {
  const auto submitted = requests_.find(handle);
  if (submitted == nullptr) return fail(Status::kInvalid, "no such request (any more)");
  submitted->request->cancel(steady_now_ns());
  move_or_expire(*submitted);
  return {};
}

uint64_t Engine::end_overdue(uint64_t now_ns) {
  uint64_t first_ns = UINT64_MAX;
  for (const auto& submitted : requests_.all()) {
    if (submitted->posted == Posted::kNowhere || submitted->request->done()) continue;
    if (now_ns >= submitted->request->due_ns()) {
      move_or_expire(*submitted);
    } else {
      first_ns = std::min(first_ns, submitted->request->due_ns());
    }
  }
  return first_ns;
}

void Engine::end_all_posted(const Error& why) {
  for (const auto& submitted : requests_.all()) end_posted(*submitted, why);
}

void Engine::end_posted(const Submitted& submitted, const Error& why) {
  if (submitted.posted == Posted::kExpectations) expectations_.end(submitted.request.get(), why);
  if (submitted.posted == Posted::kTagged) tagged_.end(submitted.request.get(), why);
}

Result<Status> Engine::test(uint64_t handle, Outcome* outcome) {
  const auto submitted = requests_.find(handle);
  if (submitted == nullptr) return fail(Status::kInvalid, "no such request (any more)");
  const PeerRequest& request = *submitted->request;
  if (!request.done()) {
    if (submitted->peer != nullptr) submitted->peer->polling().polls(steady_now_ns());
    move_or_expire(*submitted);
  }
  if (!request.done()) return Status::kAgain;
  return take_end(handle, *submitted, outcome);
}

// Several threads may have waited. But where the program wants to be told, one of them is told.
Result<Status> Engine::take_end(uint64_t handle, const Submitted& submitted, Outcome* outcome) {
  const bool taken = requests_.remove(handle) != nullptr;
  if (!taken && submitted.completion.by != Completion::By::kTest) {
    return fail(Status::kInvalid, "no such request (any more): its completion was taken");
  }
  *outcome = submitted.request->outcome();
  return Status::kOk;
}

// Spins for as long as the bytes and an answer take that comes at once. Then it sleeps.
Result<Status> Engine::wait(uint64_t handle, uint64_t limit_ns, Outcome* outcome) {
  if (limit_ns == 0) return test(handle, outcome);
  const auto submitted = requests_.find(handle);
  if (submitted == nullptr) return fail(Status::kInvalid, "no such request (any more)");
  const PeerRequest& request = *submitted->request;
  const uint64_t begin_ns = steady_now_ns();
  const uint64_t end_ns = begin_ns + std::min(limit_ns, kLongestWaitNs);
  const bool looked_after = submitted->peer == nullptr || spin(*submitted, begin_ns, end_ns);
  if (!request.done()) {
    sleep(*submitted, end_ns);
  } else if (!looked_after) {
    move_or_expire(*submitted);  // which arms the link again
  }
  if (!request.done()) return Status::kAgain;
  return take_end(handle, *submitted, outcome);
}

// bytes_to_move() of a receive grows when its message comes, which one more round trip reads.
bool Engine::spin(const Submitted& submitted, uint64_t begin_ns, uint64_t end_ns) {
  const PeerRequest& request = *submitted.request;
  PollingThreads& polling = submitted.peer->polling();
  bool nothing_left = true;
  polling.begin_spin();
  for (uint64_t now_ns = begin_ns; !request.done() && now_ns < end_ns; now_ns = steady_now_ns()) {
    const uint64_t spun_ns = now_ns - begin_ns, bytes = request.bytes_to_move();
    const bool reads_letter = bytes > 0 && submitted.posted != Posted::kNowhere;
    const uint32_t round_trips = request.round_trips + (reads_letter ? 1 : 0);
    if (spun_ns >= spin_ns(bytes, round_trips)) break;
    polling.polls(now_ns);
    nothing_left = submitted.peer->try_move(true);
    if (spun_ns > quick_ns(bytes, round_trips)) ::sched_yield();
  }
  polling.end_spin();
  return nothing_left && submitted.peer->threads_suffice();
}

void Engine::sleep(const Submitted& submitted, uint64_t end_ns) {
  const PeerRequest& request = *submitted.request;
  if (submitted.peer != nullptr) submitted.peer->polling().begin_sleep();
  move_or_expire(submitted);
  const bool posted = submitted.posted != Posted::kNowhere;
  if (posted && !request.wait_until(std::min(end_ns, request.due_ns()))) move_or_expire(submitted);
  (void)request.wait_until(end_ns);
  if (submitted.peer != nullptr) submitted.peer->polling().end_sleep(steady_now_ns());
}

bool Engine::release(uint64_t handle) {
  const auto submitted = requests_.remove(handle);
  if (submitted != nullptr) {
    end_posted(*submitted, make_error(Status::kInvalid, 0, "it was released"));
  }
  return submitted != nullptr || remotes_.remove(handle) != nullptr ||
         plans_.remove(handle) != nullptr || fetched_.remove(handle) != nullptr;
}

}  // namespace slime
