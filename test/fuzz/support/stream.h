// A stream whose other end the fuzzer holds, and a clock that only the fuzzer moves.
#pragma once

#include <sys/socket.h>

#include <span>
#include <vector>

#include "base/net/socket.h"
#include "test/fuzz/support/target.h"
#include "test/support/manual_clock.h"

namespace slime::fuzz {

using test::ManualClock;

struct Stream {
  Fd ours, theirs;

  Stream() {
    int fds[2];
    FUZZ_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    ours = Fd(fds[0]);
    theirs = Fd(fds[1]);
  }
  // What the other end does not take at once is lost: the fuzzer's business.
  void say(std::span<const std::byte> bytes) const {
    (void)::send(ours.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  void hang_up() const { (void)::shutdown(ours.get(), SHUT_WR); }
  std::vector<std::byte> hear() const {
    std::vector<std::byte> heard(64 << 10);
    const ssize_t got = ::recv(ours.get(), heard.data(), heard.size(), MSG_DONTWAIT);
    heard.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return heard;
  }
};

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace slime::fuzz
