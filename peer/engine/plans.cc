// Requests of many pieces: from lists, from plans that were prepared before, and of pages.
#include <algorithm>
#include <cinttypes>
#include <utility>

#include "peer/engine/engine.h"
#include "peer/engine/sources.h"

namespace slime {
namespace {

constexpr size_t kMostAssignments = 16 << 20;
// So many are checked at the call; what follows is when it is moved.
constexpr size_t kAtOnce = 4096;

Result<void> check_count(size_t count) {
  if (count == 0) {
    return fail(Status::kInvalid, "no assignments: a request moves one piece at least");
  }
  if (count > kMostAssignments) {
    return fail(Status::kInvalid, "%zu assignments; a request has %zu at most", count,
                kMostAssignments);
  }
  return {};
}

uint8_t right_for(Opcode opcode) { return opcode == Opcode::kRead ? kRemoteRead : kRemoteWrite; }

// Page `index` is the first that is not inside; none: the number of pages.
size_t first_outside(std::span<const uint32_t> pages, uint64_t offset, uint64_t stride,
                     uint64_t bytes, uint64_t size) {
  if (offset > size || bytes > size - offset) return 0;
  const uint64_t room = size - offset - bytes;  // for the beginning of the last page
  const uint64_t last = stride == 0 ? UINT32_MAX : room / stride;
  const auto found = std::ranges::find_if(pages, [last](uint32_t page) { return page > last; });
  return static_cast<size_t>(found - pages.begin());
}

Result<void> check_pages(const char* what, std::span<const uint32_t> pages, uint64_t offset,
                         uint64_t stride, uint64_t bytes, uint64_t size) {
  const size_t outside = first_outside(pages, offset, stride, bytes, size);
  if (outside == pages.size()) return {};
  return fail(Status::kInvalid,
              "page %zu of the list is %" PRIu32 ": %" PRIu64 " bytes from %" PRIu64 " + %" PRIu32
              " * %" PRIu64 " on are not inside the %s region of %" PRIu64 " bytes",
              outside, pages[outside], bytes, offset, pages[outside], stride, what, size);
}

}  // namespace

// The pieces of the request, or the first of them and where the others come from.
template <typename Source>
Result<void> Engine::fill(Source source, bool borrows, PeerRequest* request) {
  request->pieces.reserve(std::min(source.size(), kAtOnce));
  if (auto done = source.refill(*request, kAtOnce); !done) return done;
  if (source.at_end()) return {};
  if (!borrows) source.own_arrays();
  request->source = std::make_unique<Source>(std::move(source));
  return {};
}

template <typename Source>
Result<uint64_t> Engine::submit_from(Source source, std::shared_ptr<Peer> peer,
                                     std::shared_ptr<PeerRequest> request, const Extra& extra) {
  if (auto done = fill(std::move(source), extra.borrows, request.get()); !done) {
    return fail(std::move(done.error()));
  }
  if (extra.notification) {
    auto message = message_of(*extra.notification);
    if (!message) return fail(std::move(message.error()));
    request->messages.push_back(std::move(*message));
  }
  if (extra.immediate)
    request->messages.push_back(Message::of(MessageKind::kImmediate, *extra.immediate));
  return hand_over(std::move(peer), std::move(request), extra.terms);
}

Result<uint64_t> Engine::submit(uint64_t peer_handle, Opcode opcode,
                                std::span<const Assignment> assignments, const Extra& extra) {
  auto peer = known_peer(peer_handle);
  if (!peer) return fail(peer.error());
  if (auto right = check_count(assignments.size()); !right) return fail(right.error());
  auto request = new_request(extra.terms);
  request->opcode = opcode;
  Resolver resolver(regions_, remotes_, &memory_, peer_handle, right_for(opcode));
  return submit_from(AssignmentSource(assignments, std::move(resolver), spare_), std::move(*peer),
                     std::move(request), extra);
}

Result<uint64_t> Engine::prepare(uint64_t peer, std::span<const Assignment> assignments) {
  if (const auto known = known_peer(peer); !known) return fail(known.error());
  if (auto right = check_count(assignments.size()); !right) return fail(right.error());
  auto plan = std::make_shared<Plan>();
  Resolver resolver(regions_, remotes_, &memory_, peer, 0);
  plan->pieces.reserve(assignments.size());
  for (size_t i = 0; i < assignments.size(); ++i) {
    const auto piece = resolver.resolve(assignments[i], i);
    if (!piece) return fail(piece.error());
    plan->pieces.push_back(*piece);
  }
  plan->peer = peer;
  plan->rights = resolver.common_rights();
  for (const auto& one : resolver.locals()) plan->locals.push_back(one.handle);
  for (const auto& one : resolver.remotes()) plan->remotes.push_back(one.handle);
  const uint64_t handle = plans_.add(std::move(plan));
  if (handle == 0) return fail(Status::kNoMemory, "too many plans were not released");
  return handle;
}

// A region has another handle when it is registered or imported again.
Result<void> Engine::hold_regions(const Plan& plan, PeerRequest* request) const {
  const uint8_t right = right_for(request->opcode);
  if ((plan.rights & right) == 0) {
    return fail(Status::kInvalid, "a region of the plan does not let peers %s",
                right == kRemoteRead ? "read" : "write");
  }
  for (const uint64_t handle : plan.locals) {
    request->regions.push_back(regions_.find(handle));
    if (request->regions.back() != nullptr) continue;
    return fail(Status::kInvalid, "a local region of the plan was deregistered; prepare another");
  }
  for (const uint64_t handle : plan.remotes) {
    const auto imported = remotes_.find(handle);
    if (imported == nullptr) {
      return fail(Status::kInvalid,
                  "a region of the peer that the plan names was released; prepare another");
    }
    request->remotes.push_back(imported->remote);
  }
  return {};
}

Result<uint64_t> Engine::start(uint64_t plan_handle, Opcode opcode,
                               std::optional<std::span<const uint32_t>> indices,
                               const Extra& extra) {
  auto plan = plans_.find(plan_handle);
  if (plan == nullptr) return fail(Status::kInvalid, "no such plan (any more)");
  auto peer = known_peer(plan->peer);
  if (!peer) return fail(peer.error());
  auto request = new_request(extra.terms);
  request->opcode = opcode;
  if (auto held = hold_regions(*plan, request.get()); !held) return fail(std::move(held.error()));
  if (!indices) {
    return submit_from(PlanSource(std::move(plan)), std::move(*peer), std::move(request), extra);
  }
  if (auto right = check_count(indices->size()); !right) return fail(right.error());
  const size_t count = plan->pieces.size();
  const auto wrong = std::ranges::find_if(*indices, [=](uint32_t one) { return one >= count; });
  if (wrong != indices->end()) {
    return fail(Status::kInvalid, "index %" PRIu32 " at %td: the plan has %zu assignments", *wrong,
                wrong - indices->begin(), count);
  }
  return submit_from(PlanSource(std::move(plan), *indices), std::move(*peer), std::move(request),
                     extra);
}

Result<uint64_t> Engine::start_pages(uint64_t peer_handle, Opcode opcode, const Pages& pages,
                                     const Extra& extra) {
  auto peer = known_peer(peer_handle);
  if (!peer) return fail(peer.error());
  if (auto right = check_count(pages.local_pages.size()); !right) return fail(right.error());
  auto request = new_request(extra.terms);
  request->opcode = opcode;
  Resolver resolver(regions_, remotes_, &memory_, peer_handle, right_for(opcode));
  const auto origin = resolver.resolve({pages.local, pages.remote, 0, 0, 0}, 0);
  if (!origin) return fail(origin.error());
  auto inside = check_pages("local", pages.local_pages, pages.local_offset, pages.local_stride,
                            pages.bytes, origin->memory->bytes);
  if (inside) {
    inside = check_pages("remote", pages.remote_pages, pages.remote_offset, pages.remote_stride,
                         pages.bytes, origin->remote->address.bytes);
  }
  if (!inside) return fail(std::move(inside.error()));
  request->regions.push_back(resolver.locals().front().object);
  request->remotes.push_back(resolver.remotes().front().object);
  return submit_from(PageSource(pages, *origin), std::move(*peer), std::move(request), extra);
}

}  // namespace slime
