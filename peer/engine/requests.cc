// The requests of an engine: from handles to memory, and how they end.
#include <algorithm>
#include <cinttypes>
#include <utility>

#include "base/clock.h"
#include "peer/engine/engine.h"

namespace slime {
namespace {

// A waiting thread that sleeps is woken some 30 us late, which is worth little to a long request.
constexpr uint64_t kBytesPerNs = 2, kMostMovedNs = 100'000;
constexpr size_t kMostAssignments = 16 << 20;
constexpr uint64_t kLongestWaitNs = uint64_t{1} << 60;  // 36 years: sums of times do not overflow

// Few regions, mostly: those that were named before are found again.
constexpr size_t kLookedAt = 16;

template <typename Shared>
void add_once(std::vector<Shared>* all, const Shared& one) {
  const size_t from = all->size() - std::min(all->size(), kLookedAt);
  if (std::find(all->begin() + static_cast<ptrdiff_t>(from), all->end(), one) == all->end()) {
    all->push_back(one);
  }
}

bool fits(uint64_t offset, uint64_t bytes, uint64_t size) {
  return offset <= size && bytes <= size - offset;
}

tl::unexpected<Error> beyond(const char* what, size_t index, const Assignment& assignment,
                             uint64_t offset, uint64_t size) {
  return fail(Status::kInvalid,
              "assignment %zu: %" PRIu64 " bytes from %" PRIu64
              " on are not inside the %s region of %" PRIu64 " bytes",
              index, assignment.bytes, offset, what, size);
}

}  // namespace

// The assignments of a request name few regions, mostly the same as the one before.
Result<void> Engine::resolve(std::span<const Assignment> assignments, uint64_t peer,
                             PeerRequest* request) {
  const uint8_t right = request->opcode == Opcode::kRead ? kRemoteRead : kRemoteWrite;
  uint64_t local_handle = 0, remote_handle = 0;
  const Region* local = nullptr;
  Remote* remote = nullptr;
  for (size_t i = 0; i < assignments.size(); ++i) {
    const Assignment& one = assignments[i];
    if (local == nullptr || one.local != local_handle) {
      auto region = regions_.find(one.local);
      if (region == nullptr) {
        return fail(Status::kInvalid, "assignment %zu: no such local region (any more)", i);
      }
      local = region.get();
      local_handle = one.local;
      add_once(&request->regions, region);
    }
    if (remote == nullptr || one.remote != remote_handle) {
      const auto imported = remotes_.find(one.remote);
      if (imported == nullptr || imported->peer != peer) {
        return fail(Status::kInvalid, "assignment %zu: no such region of that peer (any more)", i);
      }
      remote = imported->remote.get();
      remote_handle = one.remote;
      add_once(&request->remotes, imported->remote);
      if ((remote->address.rights & right) == 0) {
        return fail(Status::kInvalid, "assignment %zu: that region does not let peers %s", i,
                    right == kRemoteRead ? "read" : "write");
      }
    }
    if (!fits(one.local_offset, one.bytes, local->memory.bytes)) {
      return beyond("local", i, one, one.local_offset, local->memory.bytes);
    }
    if (!fits(one.remote_offset, one.bytes, remote->address.bytes)) {
      return beyond("remote", i, one, one.remote_offset, remote->address.bytes);
    }
    request->append({local->memory.address + one.local_offset, &local->memory, remote,
                     one.remote_offset, one.bytes});
  }
  return {};
}

std::shared_ptr<PeerRequest> Engine::new_request(uint64_t deadline_ns) const {
  auto request = std::make_shared<PeerRequest>();
  request->submitted_ns = steady_now_ns();
  const uint64_t limit = deadline_ns != 0 ? deadline_ns : seconds_to_ns(options_.default_deadline);
  request->set_due(request->submitted_ns + std::min(limit, kLongestWaitNs));
  return request;
}

Result<uint64_t> Engine::keep(Submitted submitted) {
  const uint64_t handle = requests_.add(std::make_shared<Submitted>(std::move(submitted)));
  if (handle == 0) return fail(Status::kNoMemory, "too many requests were not waited for");
  return handle;
}

Result<uint64_t> Engine::hand_over(std::shared_ptr<Peer> peer,
                                   std::shared_ptr<PeerRequest> request) {
  const auto is_letter = [](const Message& message) { return message.letter != nullptr; };
  request->round_trips = (request->pieces.empty() ? 0 : 1) + (request->messages.empty() ? 0 : 1) +
                         (std::ranges::any_of(request->messages, is_letter) ? 1 : 0);
  auto handle = keep({peer, request});
  if (handle && !peer->submit(std::move(request))) service_->attend(std::move(peer));
  return handle;
}

Result<uint64_t> Engine::submit(uint64_t peer_handle, Opcode opcode,
                                std::span<const Assignment> assignments, const Extra& extra) {
  const auto peer = known_peer(peer_handle);
  if (!peer) return fail(peer.error());
  if (assignments.empty()) {
    return fail(Status::kInvalid, "no assignments: a request moves one piece at least");
  }
  if (assignments.size() > kMostAssignments) {
    return fail(Status::kInvalid, "%zu assignments; a request has %zu at most", assignments.size(),
                kMostAssignments);
  }
  const auto request = new_request(extra.deadline_ns);
  request->opcode = opcode;
  request->pieces.reserve(assignments.size());
  if (auto done = resolve(assignments, peer_handle, request.get()); !done) {
    return fail(std::move(done.error()));
  }
  if (extra.notification) {
    auto message = message_of(*extra.notification);
    if (!message) return fail(std::move(message.error()));
    request->messages.push_back(std::move(*message));
  }
  if (extra.immediate)
    request->messages.push_back(Message::of(MessageKind::kImmediate, *extra.immediate));
  return hand_over(*peer, request);
}

// No peer ends what is posted when it is overdue.
void Engine::move_or_expire(const Submitted& submitted) {
  if (submitted.peer != nullptr && !submitted.peer->try_move()) service_->attend(submitted.peer);
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

void Engine::end_posted(const Submitted& submitted, const Error& why) {
  if (submitted.posted == Posted::kExpectations) expectations_.end(submitted.request.get(), why);
  if (submitted.posted == Posted::kTagged) tagged_.end(submitted.request.get(), why);
}

Result<Status> Engine::test(uint64_t handle, Outcome* outcome) {
  const auto submitted = requests_.find(handle);
  if (submitted == nullptr) return fail(Status::kInvalid, "no such request (any more)");
  const PeerRequest& request = *submitted->request;
  if (!request.done()) move_or_expire(*submitted);
  if (!request.done()) return Status::kAgain;
  *outcome = request.outcome();
  (void)requests_.remove(handle);
  return Status::kOk;
}

// Spins for as long as an answer takes that comes at once, after its bytes. Then it sleeps.
Result<Status> Engine::wait(uint64_t handle, uint64_t limit_ns, Outcome* outcome) {
  const auto submitted = requests_.find(handle);
  if (submitted == nullptr) return fail(Status::kInvalid, "no such request (any more)");
  const PeerRequest& request = *submitted->request;
  const bool posted = submitted->posted != Posted::kNowhere;  // its bytes are not known yet
  const uint64_t bytes = posted ? 0 : request.total_bytes();
  const uint64_t spun_for =
      std::min(bytes / kBytesPerNs, kMostMovedNs) + request.round_trips * Peer::kSpinNs;
  const uint64_t begin_ns = steady_now_ns(), spin_ns = std::min(limit_ns, spun_for);
  while (submitted->peer != nullptr && !request.done() && steady_now_ns() - begin_ns < spin_ns) {
    (void)submitted->peer->try_move(true);
  }
  move_or_expire(*submitted);  // also when it is done: pollers name the link again
  const uint64_t end_ns = begin_ns + std::min(limit_ns, kLongestWaitNs);
  if (posted && !request.wait_until(std::min(end_ns, request.due_ns()))) {
    move_or_expire(*submitted);
  }
  (void)request.wait_until(end_ns);
  if (!request.done()) return Status::kAgain;
  *outcome = request.outcome();
  (void)requests_.remove(handle);
  return Status::kOk;
}

bool Engine::release(uint64_t handle) {
  const auto submitted = requests_.remove(handle);
  if (submitted != nullptr) {
    end_posted(*submitted, make_error(Status::kInvalid, 0, "it was released"));
  }
  return submitted != nullptr || remotes_.remove(handle) != nullptr ||
         fetched_.remove(handle) != nullptr;
}

}  // namespace slime
