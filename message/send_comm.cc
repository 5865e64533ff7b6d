#include "message/send_comm.h"

#include <ctime>

#include "base/log.h"
#include "settings/times.h"

namespace slime {

SendCommImpl::SendCommImpl(Devices& devices, Device& device, LinkParts parts)
    : LinkComm(devices, device, std::move(parts)), sender_(*this, link_, eager_max_) {
  begin(sender_);
}

SendCommImpl::~SendCommImpl() {
  if (progresses_when_idle()) drain_before_close();
  leave();
}

Status SendCommImpl::isend(const void* data, size_t bytes, int tag, const MemoryRegion* region,
                           Request** request) {
  const Call call(*this);
  const Status status = sender_.isend(data, bytes, tag, region, request);
  note(*request != nullptr, status);
  return status;
}

Status SendCommImpl::test(Request* request, bool* done, size_t* sizes) {
  const Call call(*this);
  const Status status = sender_.test(request, done, sizes);
  note(*done, status);
  return status;
}

// Mostly the peer's kernel has everything already. If a rail has just died, both ends must fence it
// first, and its messages must be sent again.
void SendCommImpl::drain_before_close() {
  const Call call(*this);
  constexpr timespec kPause{0, 200'000};
  const uint64_t limit_ns = times::kRailTimeoutsToClose * link_.context().rail_timeout_ns;
  const LinkClock& clock = link_.rails().clock();
  for (const uint64_t begun_ns = clock.now_ns; !settled();) {
    if (move() == Status::kOk && clock.now_ns - begun_ns > limit_ns) {
      SLIME_WARN("peer %s: closed without knowing whether the last small messages arrived",
                 peer_name().c_str());
      return;
    }
    ::nanosleep(&kPause, nullptr);
  }
}

}  // namespace slime
