#include "transports/verbs/farewells.h"

#include <array>
#include <ctime>
#include <utility>

#include "settings/times.h"

namespace slime::verbs {
namespace {

constexpr uint64_t kFarewell = UINT64_MAX;  // wr_id; no WorkId looks so

bool post_farewell(const QueuePair& pair) {
  ibv_send_wr request = {};
  request.wr_id = kFarewell;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  return pair.post(&request) == 0;
}

}  // namespace

Farewells::~Farewells() {
  constexpr timespec kPause{0, 100'000};
  const uint64_t end_ns = steady_now_ns() + times::kLastLinger;
  const std::lock_guard lock(mutex_);
  for (uint64_t now_ns = steady_now_ns(); !resting_.empty() && now_ns < end_ns;
       now_ns = steady_now_ns()) {
    poll_locked(now_ns);
    if (!resting_.empty()) ::nanosleep(&kPause, nullptr);
  }
  for (Resting& resting : resting_) end(resting);
}

void Farewells::say(Remains remains) {
  Resting resting{std::move(remains), 0, steady_now_ns() + times::kLinger};
  for (const QueuePair& pair : resting.remains.pairs) resting.left += post_farewell(pair);
  const std::lock_guard lock(mutex_);
  if (resting_.size() == kCapacity) {
    end(resting_.front());
    resting_.pop_front();
  }
  resting_.push_back(std::move(resting));
  poll_locked(steady_now_ns());
}

void Farewells::poll() {
  const std::lock_guard lock(mutex_);
  poll_locked(steady_now_ns());
}

size_t Farewells::size() const {
  const std::lock_guard lock(mutex_);
  return resting_.size();
}

// What the peer has sent meanwhile is nobody's.
void Farewells::poll_locked(uint64_t now_ns) {
  std::array<ibv_wc, 32> completions;
  for (size_t i = 0; i < resting_.size();) {
    Resting& resting = resting_[i];
    int polled = 0;
    do {
      polled = ibv_poll_cq(resting.remains.completions, completions.size(), completions.data());
      for (int k = 0; k < polled; ++k) {
        resting.left -= completions[static_cast<size_t>(k)].wr_id == kFarewell;
      }
    } while (polled == static_cast<int>(completions.size()));
    if (resting.left > 0 && polled >= 0 && now_ns < resting.deadline_ns) {
      ++i;
      continue;
    }
    end(resting);
    resting_.erase(resting_.begin() + static_cast<ptrdiff_t>(i));
  }
}

// Queue pairs first: the completion queue must outlive them.
void Farewells::end(Resting& resting) {
  resting.remains.pairs.clear();
  (void)nic_.verbs().destroy_cq(resting.remains.completions);
}

}  // namespace slime::verbs
