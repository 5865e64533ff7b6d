// Two connected TCP sockets on loopback, and waiting with a deadline.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/clock.h"
#include "base/net/socket.h"

namespace slime::test {

inline SocketAddress loopback(const char* host = "127.0.0.1") {
  return SocketAddress::parse(host).value();
}

inline uint64_t now_ns() { return SteadyClock::instance().now_ns(); }

inline void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// Repeats `step` while it returns kAgain; kAgain after a minute.
template <typename Step>
Status wait_for(Step step) {
  const uint64_t deadline = now_ns() + 60'000'000'000;
  for (;;) {
    const Status status = step();
    if (status != Status::kAgain || now_ns() > deadline) return status;
    sleep_ms(1);
  }
}

struct SocketPair {
  Fd listener;
  Fd active;
  Accepted passive;

  // `host` is the address to listen on.
  explicit SocketPair(const char* host = "127.0.0.1", const SocketAddress* source = nullptr,
                      uint64_t buffer_bytes = 0) {
    Error error;
    listener = listen_on(loopback(host)).value();
    EXPECT_TRUE(set_buffers(listener, buffer_bytes));
    const SocketAddress there = local_address(listener).value();
    active = start_connect(there, {.source = source, .buffer_bytes = buffer_bytes}).value();
    EXPECT_EQ(wait_for([&] { return accept_one(listener, &passive, &error); }), Status::kOk);
    EXPECT_EQ(wait_for([&] { return finish_connect(active, there, &error); }), Status::kOk)
        << error.what;
  }
};

}  // namespace slime::test
