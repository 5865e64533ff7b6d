// Connections that say nothing and stay, more of them than any port has places for.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <functional>
#include <vector>

#include "base/net/socket.h"

namespace slime::test {

class Strangers {
 public:
  static constexpr size_t kMany = 1500;

  Strangers() { (void)getrlimit(RLIMIT_NOFILE, &before_); }
  ~Strangers() { (void)setrlimit(RLIMIT_NOFILE, &before_); }
  Strangers(const Strangers&) = delete;
  Strangers& operator=(const Strangers&) = delete;

  // False: this process may not have so many descriptors.
  bool may_be_many() const {
    constexpr rlim_t kNeeded = 2 * kMany + 1000;  // both ends, and what else the test has open
    rlimit raised = before_;
    if (raised.rlim_cur >= kNeeded) return true;
    raised.rlim_cur = kNeeded;
    return raised.rlim_max >= kNeeded && setrlimit(RLIMIT_NOFILE, &raised) == 0;
  }
  // `between` lets the other end look.
  void come(
      const SocketAddress& address, size_t count, const std::function<void()>& between = [] {}) {
    for (size_t i = 0; i < count; ++i) {
      auto fd = start_connect(address);
      ASSERT_TRUE(fd) << fd.error().what;
      fds_.push_back(std::move(*fd));
      if (i % 50 == 49) between();
    }
  }

 private:
  rlimit before_{};
  std::vector<Fd> fds_;
};

}  // namespace slime::test

#define SLIME_NEEDS_MANY(strangers)                                                       \
  if (!(strangers).may_be_many()) {                                                       \
    GTEST_SKIP() << "1,500 strangers need more descriptors: raise the limit (ulimit -n)"; \
  }
