// What the tests of the tcp rail share: rails on the loopback, connected channels, raw sockets.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/interfaces/interfaces.h"
#include "base/net/socket.h"
#include "settings/settings.h"
#include "test/support/test_buffer.h"
#include "transports/rail.h"
#include "transports/tcp/frames/frame_reader.h"
#include "transports/tcp/frames/wire.h"
#include "transports/tcp/rail.h"

namespace slime::tcp {

using test::eventually;
using test::kTestPatienceMs;
using test::TestBuffer;
using test::work_of;

inline Interface loopback_interface() {
  Interface interface;
  interface.name = "lo";
  interface.address = *SocketAddress::parse("127.0.0.1");
  interface.loopback = true;
  return interface;
}

inline std::unique_ptr<TcpRail> loopback_rail(const Settings& settings = {}) {
  return TcpRail::open(loopback_interface(), settings);
}

struct TestPair {
  std::unique_ptr<TcpRail> left_rail, right_rail;
  std::unique_ptr<Channel> active, passive;
};

inline TestPair connected_pair(bool confirm_delivery = false, const Settings& settings = {}) {
  TestPair pair{loopback_rail(settings), loopback_rail(settings), nullptr, nullptr};
  auto active =
      pair.left_rail->open_channel({.active = true, .confirm_delivery = confirm_delivery});
  auto passive =
      pair.right_rail->open_channel({.active = false, .confirm_delivery = confirm_delivery});
  EXPECT_TRUE(active && passive);
  pair.active = std::move(*active);
  pair.passive = std::move(*passive);
  const bool connected = eventually([&] {
    const Status left = pair.active->connect(pair.passive->address());
    const Status right = pair.passive->connect(pair.active->address());
    return left != Status::kAgain && right != Status::kAgain;
  });
  EXPECT_TRUE(connected);
  EXPECT_EQ(pair.active->connect(pair.passive->address()), Status::kOk)
      << pair.active->failure().what;
  EXPECT_EQ(pair.passive->connect(pair.active->address()), Status::kOk)
      << pair.passive->failure().what;
  return pair;
}

inline std::vector<Done> poll_once(Channel& channel, Status* status, size_t room = 64) {
  std::vector<Done> done(room);
  size_t count = 0;
  *status = channel.poll(done, &count);
  done.resize(count);
  return done;
}

inline size_t post_one(Channel& channel, const Work& work) {
  size_t taken = 0;
  EXPECT_EQ(channel.post({&work, 1}, &taken), Status::kOk) << channel.failure().what;
  return taken;
}

// A FrameReader, and the parts of a channel that its frames are about.
struct TestReader {
  TestReader(const RegionTable& regions, uint64_t max_message_bytes)
      : answers(regions, kMaxReads), reader(regions, max_message_bytes, queue, reads, answers) {}

  SendQueue queue{8, true, kMaxReads};
  Reads reads{kMaxReads};
  Answers answers;
  FrameReader reader;
};

// The peer of a FrameReader: a byte stream that the test writes by hand.
struct TestStream {
  Fd reader, writer;
  TestStream() {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    reader = Fd(fds[0]);
    writer = Fd(fds[1]);
  }
  void write(std::span<const std::byte> bytes) {
    ASSERT_EQ(::send(writer.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
};

inline void append_frame(std::vector<std::byte>* stream, const FrameHeader& header,
                         std::span<const std::byte> payload) {
  const auto head = std::as_bytes(std::span(&header, 1));
  stream->insert(stream->end(), head.begin(), head.end());
  stream->insert(stream->end(), payload.begin(), payload.end());
}

}  // namespace slime::tcp
