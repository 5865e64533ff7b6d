#include "peer/messages/expectations.h"

#include <algorithm>

#include "base/clock.h"
#include "peer/messages/posted.h"

namespace slime {

uint64_t Expectations::take_kept(Counts& counts, uint32_t immediate, uint64_t most) {
  const auto found = counts.find(immediate);
  if (found == counts.end()) return 0;
  const uint64_t taken = std::min(found->second, most);
  found->second -= taken;
  if (found->second == 0) counts.erase(found);
  return taken;
}

void Expectations::expect(uint64_t peer, uint32_t immediate, uint64_t count,
                          std::shared_ptr<PeerRequest> request) {
  {
    const std::lock_guard lock(mutex_);
    uint64_t left = count;
    for (auto& [from, counts] : kept_) {
      if (peer == kAnyPeer || peer == from) left -= take_kept(counts, immediate, left);
    }
    if (left > 0) {
      open_.push_back({peer, immediate, left, std::move(request)});
      return;
    }
  }
  request->end(steady_now_ns());
}

bool Expectations::take(uint64_t peer, uint32_t immediate) {
  uint64_t now_ns = 0;
  std::shared_ptr<PeerRequest> ended;
  {
    std::unique_lock lock(mutex_);
    now_ns = steady_now_ns();  // not before that of a request that is expected here
    const auto fits = [&](const Open& one) {
      return one.immediate == immediate && (one.peer == kAnyPeer || one.peer == peer) &&
             now_ns < one.request->due_ns();
    };
    const auto found = std::ranges::find_if(open_, fits);
    if (found == open_.end() && unexpected_) {
      lock.unlock();
      return unexpected_(peer, immediate);
    }
    if (found == open_.end()) {
      Counts& counts = kept_[peer];
      if (counts.size() == kMostKept && !counts.contains(immediate)) return false;
      ++counts[immediate];
      return true;
    }
    if (--found->left > 0) return true;
    ended = std::move(found->request);
    open_.erase(found);
  }
  ended->end(now_ns);
  return true;
}

void Expectations::forget(uint64_t peer, uint32_t immediate) {
  const std::lock_guard lock(mutex_);
  for (auto& [from, counts] : kept_) {
    if (peer == kAnyPeer || peer == from) counts.erase(immediate);
  }
}

void Expectations::end(const PeerRequest* request, const Error& why) {
  end_those(why, [request](const Open& one) { return one.request.get() == request; });
}

void Expectations::end_of(uint64_t peer, const Error& why) {
  end_those(why, [peer](const Open& one) { return one.peer == peer; });
}

void Expectations::drop_of(uint64_t peer) {
  const std::lock_guard lock(mutex_);
  kept_.erase(peer);
}

template <typename Which>
void Expectations::end_those(const Error& why, Which which) {
  std::unique_lock lock(mutex_);
  const std::list<Open> ended = take_out(open_, which);
  lock.unlock();
  end_all(ended, why);
}

}  // namespace slime
