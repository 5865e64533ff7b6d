// What the tests over real sockets share: the settings of their hosts, and one message from end to
// end.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "message/recv_comm.h"
#include "message/send_comm.h"
#include "test/support/tcp_link.h"

namespace slime::test {

inline Settings rails(int per_interface) {
  Settings settings;
  settings.rails_per_if = per_interface;
  settings.min_stripe = 4096;
  return settings;
}

// Buffers of both ends, registered.
struct Buffers {
  Buffers(TcpHost& from, TcpHost& to, size_t bytes) : source(bytes), target(bytes) {
    for (size_t i = 0; i < bytes; ++i) source[i] = static_cast<std::byte>(i * 7 + i / 251);
    auto s = from.devices->device(0)->memory().acquire({source.data(), bytes});
    auto t = to.devices->device(0)->memory().acquire({target.data(), bytes});
    EXPECT_TRUE(s && t);
    source_region = *s;
    target_region = *t;
  }
  std::vector<std::byte> source, target;
  const MemoryRegion *source_region = nullptr, *target_region = nullptr;
};

inline SendCommImpl& as_impl(SendComm& comm) { return static_cast<SendCommImpl&>(comm); }
inline RecvCommImpl& as_impl(RecvComm& comm) { return static_cast<RecvCommImpl&>(comm); }

struct Outcome {
  Status sent = Status::kAgain, received = Status::kAgain;
  size_t bytes = 0;
};

// One message, both ends driven in turn; `between` runs at every step.
inline Outcome transfer(
    TcpLink& link, Buffers& buffers, size_t bytes, const std::function<void()>& between = [] {}) {
  Request *send = nullptr, *receive = nullptr;
  Outcome outcome;
  const Receive wanted{buffers.target.data(), buffers.target.size(), 0, buffers.target_region};
  const auto drive = [](Comm& comm, Request* request, size_t* sizes, Status* status) {
    bool done = false;
    const Status tested = comm.test(request, &done, sizes);
    if (tested != Status::kOk) *status = tested;
    if (done) *status = Status::kOk;
  };
  const bool ended = in_time([&] {
    between();
    // An end that has nothing outstanding is still needed to settle the death of a rail.
    if (outcome.received == Status::kOk) (void)as_impl(*link.receiver).progress();
    if (outcome.sent == Status::kOk) (void)as_impl(*link.sender).progress();
    if (outcome.received == Status::kAgain) {
      if (receive != nullptr) drive(*link.receiver, receive, &outcome.bytes, &outcome.received);
      const Status posted =
          receive ? Status::kOk : link.receiver->irecv({&wanted, 1}, false, &receive);
      if (posted != Status::kOk) outcome.received = posted;
    }
    if (outcome.sent == Status::kAgain) {
      size_t size = 0;
      if (send != nullptr) drive(*link.sender, send, &size, &outcome.sent);
      const Status posted =
          send ? Status::kOk
               : link.sender->isend(buffers.source.data(), bytes, 0, buffers.source_region, &send);
      if (posted != Status::kOk) outcome.sent = posted;
    }
    return outcome.sent != Status::kAgain && outcome.received != Status::kAgain;
  });
  EXPECT_TRUE(ended) << "hangs";
  return outcome;
}

inline void expect_transfer(
    TcpLink& link, Buffers& buffers, size_t bytes, const std::function<void()>& between = [] {}) {
  std::fill(buffers.target.begin(), buffers.target.end(), std::byte{0xee});
  const Outcome outcome = transfer(link, buffers, bytes, between);
  ASSERT_EQ(outcome.sent, Status::kOk) << link.sender->failure().what;
  ASSERT_EQ(outcome.received, Status::kOk) << link.receiver->failure().what;
  EXPECT_EQ(outcome.bytes, bytes);
  EXPECT_EQ(std::memcmp(buffers.target.data(), buffers.source.data(), bytes), 0);
  for (size_t i = bytes; i < std::min(bytes + 64, buffers.target.size()); ++i) {
    ASSERT_EQ(buffers.target[i], std::byte{0xee}) << "written behind the message";
  }
}

}  // namespace slime::test
