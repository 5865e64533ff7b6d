// The peers of an engine: how they become known, and how they are removed.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "peer/engine/engine.h"

namespace slime {

// The peer with this id, which is made if it is not known.
std::shared_ptr<Peer> Engine::peer_with_id(const EngineId& id, uint64_t* handle) {
  const std::lock_guard lock(mutex_);
  return find_or_make(id, handle);
}

std::shared_ptr<Peer> Engine::find_or_make(const EngineId& id, uint64_t* handle) {
  const auto found = std::ranges::find(by_id_, id, [](const auto& entry) { return entry.first; });
  if (found != by_id_.end()) {
    *handle = found->second;
    return handles_.find(*handle);
  }
  auto peer = std::make_shared<Peer>(*world_, id, leaving(id));
  *handle = add_peer(peer);
  by_id_.emplace_back(id, *handle);
  return peer;
}

uint64_t Engine::add_peer(const std::shared_ptr<Peer>& peer) {
  const uint64_t handle = handles_.add(peer);
  peer->set_handle(handle);
  return handle;
}

std::shared_ptr<Peer> Engine::peer_with_tag(uint64_t tag) {
  const std::lock_guard lock(mutex_);
  const auto found = by_tag_.find(tag);
  return found != by_tag_.end() ? found->second.lock() : nullptr;
}

std::vector<std::shared_ptr<Peer>> Engine::peers(uint32_t thread) {
  auto all = handles_.all();
  std::erase_if(all, [thread](const auto& peer) { return peer->thread() != thread; });
  return all;
}

bool Engine::accept(bool* came) {
  for (;;) {
    auto parts = listener_->accept();
    if (!parts) {
      const bool ordinary = parts.error().what.find(kCrossing) != std::string::npos;
      log::write(ordinary ? log::Level::kInfo : log::Level::kWarn, __FILE__, __LINE__, "%s",
                 parts.error().what.c_str());
      return listener_->busy();
    }
    if (*parts == nullptr) return listener_->busy();
    const auto peer = peer_that_let_in(EngineWords::unpack((*parts)->words));
    if (peer == nullptr) continue;
    *came = true;
    peer->attach(std::move(*parts));
    attend(peer);
  }
}

std::shared_ptr<Peer> Engine::peer_that_let_in(const EngineWords& words) {
  const std::lock_guard lock(mutex_);
  if (words.from == id_) return itself_;
  const auto found =
      std::ranges::find(by_id_, words.from, [](const auto& entry) { return entry.first; });
  return found != by_id_.end() ? handles_.find(found->second) : nullptr;
}

std::vector<std::shared_ptr<Peer>> Engine::leaving(const EngineId& id) const {
  std::vector<std::shared_ptr<Peer>> all;
  std::ranges::copy_if(leaving_, std::back_inserter(all),
                       [&](const auto& peer) { return peer->id() == id && !peer->has_left(); });
  return all;
}

// What comes from this engine comes from the peer that the program knows.
std::shared_ptr<Peer> Engine::itself() {
  const std::lock_guard lock(mutex_);
  uint64_t handle = 0;
  (void)find_or_make(id_, &handle);
  if (itself_ == nullptr) {
    itself_ = std::make_shared<Peer>(*world_, id_);
    itself_handle_ = add_peer(itself_);
    itself_->set_handle(handle);
  }
  return itself_;
}

std::shared_ptr<Peer> Engine::listening_end_of(uint64_t handle) {
  const auto peer = handles_.find(handle);
  const std::lock_guard lock(mutex_);
  return peer != nullptr && peer->id() == id_ ? itself_ : nullptr;
}

Result<uint64_t> Engine::add_peer(std::span<const std::byte> blob) {
  auto address = unpack_engine(blob);
  if (!address) return fail(std::move(address.error()));
  while (!closing_) {
    uint64_t handle = 0;
    const auto peer = peer_with_id(address->engine, &handle);
    if (!peer->learn_address(address->listener)) continue;  // another thread removes it
    arrivals_.drop(handle);
    return handle;
  }
  return fail(Status::kInvalid, "%s", kClosing);
}

Result<void> Engine::remove_peer(uint64_t handle) {
  const auto removed = take_out(handle);  // now in leaving_, too
  if (removed.empty()) return fail(Status::kInvalid, "no such peer (any more)");
  for (const auto& peer : removed) {
    peer->leave(Peer::removed_here());
    attend(peer);
  }
  world_->messages.drop_of(handle);
  arrivals_.drop(handle);
  return {};
}

// Both ends of a link to this engine itself.
std::vector<std::shared_ptr<Peer>> Engine::take_out(uint64_t handle) {
  std::vector<std::shared_ptr<Peer>> left;  // freed without the lock
  const std::lock_guard lock(mutex_);
  if (handle == itself_handle_) return {};
  auto peer = handles_.remove(handle);
  if (peer == nullptr) return {};
  std::erase_if(by_id_, [handle](const auto& entry) { return entry.second == handle; });
  std::vector<std::shared_ptr<Peer>> removed = {std::move(peer)};
  if (removed.front()->id() == id_ && itself_ != nullptr) {
    (void)handles_.remove(std::exchange(itself_handle_, 0));
    removed.push_back(std::move(itself_));
  }
  for (auto& one : leaving_) {
    if (one->has_left()) left.push_back(std::move(one));
  }
  std::erase(leaving_, nullptr);
  leaving_.insert(leaving_.end(), removed.begin(), removed.end());
  return removed;
}

// One that has been removed since is not told of.
uint64_t Engine::accept(uint64_t limit_ns) {
  const std::chrono::steady_clock::time_point end{
      std::chrono::nanoseconds(steady_now_ns() + std::min(limit_ns, kLongestWaitNs))};
  while (const uint64_t peer = arrivals_.next(end)) {
    if (handles_.find(peer) != nullptr) return peer;
  }
  return 0;
}

Result<std::vector<NamedRegion>> Engine::list_regions(uint64_t peer_handle, uint64_t limit_ns) {
  auto peer = known_peer(peer_handle);
  if (!peer) return fail(peer.error());
  Terms terms;
  if (limit_ns != UINT64_MAX) terms.deadline_ns = std::max<uint64_t>(limit_ns, 1);
  auto request = new_request(terms);
  const auto listing = std::make_shared<std::vector<NamedRegion>>();
  request->listing = listing;
  auto handle = hand_over(std::move(*peer), std::move(request), terms);
  if (!handle) return fail(std::move(handle.error()));
  Outcome outcome;
  const auto ended = wait(*handle, UINT64_MAX, &outcome);
  if (!ended) return fail(ended.error());
  if (outcome.error.status != Status::kOk) return fail(std::move(outcome.error));
  return std::move(*listing);
}

Result<uint64_t> Engine::import(uint64_t peer, std::span<const std::byte> blob) {
  auto address = unpack_region(blob);
  if (!address) return fail(std::move(address.error()));
  const auto owner = known_peer(peer);
  if (!owner) return fail(owner.error());
  if ((*owner)->id() != address->engine) {
    return fail(Status::kInvalid, "this region is of another engine than that peer");
  }
  const uint64_t handle =
      remotes_.add(std::make_shared<Imported>(Imported{peer, std::make_shared<Remote>(*address)}));
  if (handle == 0) return fail(Status::kNoMemory, "too many regions of peers were not released");
  return handle;
}

}  // namespace slime
