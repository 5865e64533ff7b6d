#include "transports/tcp/reaper.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "settings/times.h"

namespace slime::tcp {

namespace {

// Bytes of input thrown away per look; the rest waits for the next look.
constexpr size_t kDiscardBytes = size_t{4} << 20;

// True when closing loses nothing: no more input can come, so that the kernel goes on sending by
// itself; or the peer's kernel has acknowledged all output (SIOCOUTQ, tcp(7)), and a reset does not
// take from the peer what its kernel has.
bool may_close(const Fd& fd) {
  // MSG_TRUNC: thrown away inside the kernel (tcp(7)).
  const ssize_t got = ::recv(fd.get(), nullptr, kDiscardBytes, MSG_TRUNC | MSG_DONTWAIT);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return true;
  int unacknowledged = 0;
  return ::ioctl(fd.get(), SIOCOUTQ, &unacknowledged) != 0 || unacknowledged == 0;
}

}  // namespace

Reaper::~Reaper() {
  const uint64_t give_up_ns = clock_.now_ns() + times::kLastLinger;
  for (bool late = false; size() > 0 && !late;) {
    late = clock_.now_ns() >= give_up_ns;
    poll();
    if (size() > 0 && !late) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Reaper::add(Fd fd) {
  ::shutdown(fd.get(), SHUT_WR);
  const std::lock_guard lock(mutex_);
  const uint64_t now_ns = clock_.now_ns();
  resting_.push_back({std::move(fd), now_ns + times::kLinger});
  poll_locked(now_ns);
  if (resting_.size() > kCapacity) resting_.pop_front();
}

void Reaper::poll() {
  const std::lock_guard lock(mutex_);
  poll_locked(clock_.now_ns());
}

void Reaper::poll_locked(uint64_t now_ns) {
  std::erase_if(resting_, [now_ns](const Resting& resting) {
    return may_close(resting.fd) || now_ns >= resting.deadline_ns;  // input goes first
  });
}

size_t Reaper::size() const {
  const std::lock_guard lock(mutex_);
  return resting_.size();
}

}  // namespace slime::tcp
