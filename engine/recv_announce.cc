// When a receive is announced by CTS. Eager messages do not need one, and while they come one after
// the other, each CTS would only cost both ends a work, in the middle of a latency-bound exchange.
// So after some eager messages in a row, CTS are held back until the sender asks for one (kWanted:
// it has a message that is too large), or no message has come for long. A stripe ends the streak.
#include <algorithm>

#include "engine/recv_comm.h"

namespace slime {
namespace {

// Longer than what a program does between two small operations, such as the start of a kernel. When
// more time has passed, the CTS does not delay an exchange, and it saves the sender the question.
constexpr uint64_t kPatienceNs = 1'000'000;

}  // namespace

bool RecvCommImpl::may_hold() const {
  return eager_streak_ >= kEagerStreak && static_cast<int32_t>(wanted_ - next_cts_) <= 0 &&
         link_.now_ns() - last_eager_ns_ < kPatienceNs;
}

void RecvCommImpl::announce(ReceiveRequest& request) {
  if (may_hold()) {
    request.held = true;
    held_[held_count_++] = request.index;
    return;
  }
  announce_held();  // CTS go in the order of posting
  write_cts(request);
  submit_cts(request);
}

void RecvCommImpl::announce_overdue() {
  if (held_count_ == 0 || link_.status() != Status::kOk || may_hold()) return;
  const uint32_t count = held_count_;
  announce_held();
  for (uint32_t i = 0; i < count; ++i) link_.hurry(requests_[held_[i]].cts_rail);
}

void RecvCommImpl::announce_held() {
  for (uint32_t i = 0; i < held_count_; ++i) {
    ReceiveRequest& request = requests_[held_[i]];
    request.held = false;
    write_cts(request);
    submit_cts(request);
  }
  held_count_ = 0;
}

void RecvCommImpl::unhold(ReceiveRequest& request) {
  request.held = false;
  const auto end = held_.begin() + held_count_;
  const auto place = std::find(held_.begin(), end, request.index);
  std::copy(place + 1, end, place);
  --held_count_;
}

// The sender waits for this CTS. It may be on the way already.
Status RecvCommImpl::on_wanted(uint32_t cts) {
  if (static_cast<int32_t>(cts - next_cts_) > 0) {
    return link_.fail_protocol("a question for a CTS that comes later");
  }
  wanted_ = cts + 1;
  return Status::kOk;
}

}  // namespace slime
