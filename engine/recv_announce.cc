// When a receive is announced by CTS. Eager messages do not need one, and while they come one after
// the other, each CTS would only cost both ends a work, in the middle of a latency-bound exchange.
// So after some eager messages in a row, CTS are held back until no message has come for a little
// longer than such an exchange takes. A stripe ends the streak.
#include <algorithm>

#include "engine/recv_comm.h"

namespace slime {
namespace {

constexpr uint32_t kStreak = 8;           // NCCL keeps 8 receives posted
constexpr uint64_t kPatienceNs = 20'000;  // what the first large message after small ones may lose

}  // namespace

void RecvCommImpl::announce(ReceiveRequest& request) {
  if (eager_streak_ >= kStreak) {
    request.held = true;
    held_[held_count_++] = request.slot;
    return;
  }
  announce_held();  // CTS go in the order of posting
  write_cts(request);
  submit_cts(request);
}

void RecvCommImpl::announce_overdue() {
  if (held_count_ == 0 || link_.status() != Status::kOk) return;
  if (held_since_ns_ == 0) held_since_ns_ = link_.now_ns();
  const bool patient = eager_streak_ >= kStreak && link_.now_ns() - held_since_ns_ < kPatienceNs;
  if (!patient) announce_held();
}

void RecvCommImpl::announce_held() {
  for (uint32_t i = 0; i < held_count_; ++i) {
    ReceiveRequest& request = requests_[held_[i]];
    request.held = false;
    write_cts(request);
    submit_cts(request);
  }
  held_count_ = 0;
  held_since_ns_ = 0;
}

void RecvCommImpl::unhold(ReceiveRequest& request) {
  request.held = false;
  const auto end = held_.begin() + held_count_;
  const auto place = std::find(held_.begin(), end, request.slot);
  std::copy(place + 1, end, place);
  --held_count_;
}

}  // namespace slime
