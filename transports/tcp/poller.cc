#include "transports/tcp/poller.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "transports/channel_common.h"

namespace slime::tcp {

Result<std::unique_ptr<Poller>> TcpPoller::open(const Rail& rail) {
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return fail(prefixed(rail.caps(), descriptor_error(errno, "epoll_create1")));
  return std::unique_ptr<Poller>(new TcpPoller(rail, std::move(epoll)));
}

// The kernel gives turns: a socket that was named goes behind the others (linux/fs/eventpoll.c).
size_t TcpPoller::poll(std::span<uint64_t> tags) {
  std::array<epoll_event, 64> events;
  size_t count = 0;
  for (bool more = true; more && count < tags.size();) {
    const auto asked = static_cast<int>(std::min(tags.size() - count, events.size()));
    const int got = ::epoll_wait(epoll_.get(), events.data(), asked, 0);
    for (int i = 0; i < got; ++i) tags[count++] = events[static_cast<size_t>(i)].data.u64;
    more = got == asked;
  }
  return count;
}

Result<void> TcpPoller::add(const Fd& socket, uint64_t tag) const {
  epoll_event event{.events = EPOLLONESHOT, .data = {.u64 = tag}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &event) == 0) return {};
  Error error = system_error(errno, "epoll_ctl(EPOLL_CTL_ADD)");
  if (error.code == ENOSPC) error.what += "; raise fs.epoll.max_user_watches";
  return fail(std::move(error));
}

void TcpPoller::arm(const Fd& socket, uint64_t tag, uint32_t events) const {
  epoll_event event{.events = events | EPOLLONESHOT, .data = {.u64 = tag}};
  const int result = ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, socket.get(), &event);
  SLIME_CHECK(result == 0);
  (void)result;
}

void TcpPoller::remove(const Fd& socket) const {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket.get(), nullptr);
}

}  // namespace slime::tcp
