#include "transports/sleeper.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

namespace slime {

Result<std::unique_ptr<Sleeper>> Sleeper::open() {
  Fd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) return fail(descriptor_error(errno, "eventfd"));
  return std::unique_ptr<Sleeper>(new Sleeper(std::move(event)));
}

Sleeper::Sleeper(Fd event) : event_(std::move(event)) {
  watched_.push_back({event_.get(), POLLIN, 0});
}

bool Sleeper::add(Poller& poller) {
  if (poller.descriptor() < 0) return false;
  pollers_.push_back(&poller);
  watched_.push_back({poller.descriptor(), POLLIN, 0});
  return true;
}

void Sleeper::add(int descriptor) {
  others_.push_back(watched_.size());
  watched_.push_back({descriptor, POLLIN, 0});
}

bool Sleeper::wait(uint64_t ns) {
  if (take_wake() || !std::ranges::all_of(pollers_, &Poller::prepare_to_sleep)) return false;
  const timespec limit{static_cast<time_t>(ns / 1'000'000'000),
                       static_cast<long>(ns % 1'000'000'000)};
  if (::ppoll(watched_.data(), watched_.size(), &limit, nullptr) <= 0) return false;
  take_wake();
  return std::ranges::any_of(others_, [this](size_t i) { return watched_[i].revents != 0; });
}

// Only the first of several calls enters the kernel.
void Sleeper::wake() {
  if (!woken_.exchange(true)) ::eventfd_write(event_.get(), 1);
}

// The count is read first: a wake() after that writes another, so the next wait() returns at once,
// perhaps for nothing.
bool Sleeper::take_wake() {
  eventfd_t count;
  const bool written = ::eventfd_read(event_.get(), &count) == 0;
  return woken_.exchange(false) || written;
}

}  // namespace slime
