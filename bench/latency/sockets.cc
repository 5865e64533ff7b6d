#include <sys/socket.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/clock.h"
#include "bench/common/two_processes.h"
#include "bench/latency/modes.h"

namespace slime::bench {
namespace {

class SocketPingPong final : public PingPong {
 public:
  SocketPingPong(int rank, int fd, bool blocking) : rank_(rank), fd_(fd) {
    set_blocking(fd, blocking);
  }

  bool run(unsigned round_trips, std::vector<uint64_t>* ns) override {
    for (unsigned i = 0; i < round_trips; ++i) {
      const uint64_t started = SteadyClock::instance().now_ns();
      const bool ok =
          rank_ == 0 ? send_message() && receive_message() : receive_message() && send_message();
      if (!ok) return false;
      if (rank_ == 0) ns->push_back(SteadyClock::instance().now_ns() - started);
    }
    return true;
  }

 private:
  bool send_message() {
    // A socket buffer that held 8 bytes at most is never full.
    if (send(fd_, message_, sizeof message_, MSG_NOSIGNAL) == sizeof message_) return true;
    std::fprintf(stderr, "bench-latency: send: %s\n", std::strerror(errno));
    return false;
  }
  bool receive_message() {
    for (size_t done = 0; done < sizeof message_;) {
      const ssize_t got = recv(fd_, message_ + done, sizeof message_ - done, 0);
      if (got > 0) done += static_cast<size_t>(got);
      if (got > 0 || (got < 0 && errno == EAGAIN)) continue;
      std::fprintf(stderr, "bench-latency: recv: %s\n", got == 0 ? "closed" : std::strerror(errno));
      return false;
    }
    return true;
  }

  const int rank_;
  const int fd_;
  char message_[kMessageBytes] = {};
};

}  // namespace

std::unique_ptr<PingPong> make_polling(int rank, int fd) {
  return std::make_unique<SocketPingPong>(rank, fd, false);
}
std::unique_ptr<PingPong> make_blocking(int rank, int fd) {
  return std::make_unique<SocketPingPong>(rank, fd, true);
}

}  // namespace slime::bench
