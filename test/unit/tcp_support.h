// What the tests of the tcp rail share: rails on the loopback, connected channels, raw sockets.
#pragma once

#include <gtest/gtest.h>
#include <slime/clock.h>
#include <slime/interfaces.h>
#include <slime/settings.h>
#include <slime/socket.h>
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

#include "transports/rail.h"
#include "transports/tcp/rail.h"
#include "transports/tcp/wire.h"

namespace slime::tcp {

inline constexpr int kTestPatienceMs = 60'000;  // for what must happen; nothing waits this long

inline bool eventually(const std::function<bool()>& condition, int patience_ms = kTestPatienceMs) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

inline Interface loopback_interface() {
  Interface interface;
  interface.name = "lo";
  interface.address = *SocketAddress::parse("127.0.0.1");
  interface.up = true;
  interface.loopback = true;
  return interface;
}

inline std::unique_ptr<TcpRail> loopback_rail(const Settings& settings = {}) {
  auto rail = TcpRail::open(loopback_interface(), settings);
  EXPECT_TRUE(rail) << rail.error().what;
  return rail ? std::move(*rail) : nullptr;
}

// Memory registered on a rail while it lives.
class TestBuffer {
 public:
  TestBuffer(Rail& rail, size_t bytes, uint8_t fill = 0)
      : rail_(rail), bytes_(bytes, std::byte{fill}) {
    auto keys = rail.register_memory({bytes_.data(), bytes});
    EXPECT_TRUE(keys) << keys.error().what;
    if (keys) keys_ = *keys;
  }
  ~TestBuffer() { deregister(); }
  TestBuffer(const TestBuffer&) = delete;
  TestBuffer& operator=(const TestBuffer&) = delete;

  void deregister() {
    if (keys_.remote) rail_.deregister_memory(keys_);
    keys_ = {};
  }
  std::byte* data() { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }
  const MemoryKeys& keys() const { return keys_; }
  std::vector<std::byte>& bytes() { return bytes_; }

  void fill_pattern(uint32_t seed) {
    for (size_t i = 0; i < bytes_.size(); ++i) {
      bytes_[i] = static_cast<std::byte>((i * 2654435761U + seed) >> 13);
    }
  }

 private:
  Rail& rail_;
  std::vector<std::byte> bytes_;
  MemoryKeys keys_;
};

inline Work work_of(TestBuffer& from, size_t from_offset, TestBuffer& to, size_t to_offset,
                    uint32_t length, uint32_t immediate = 0, uint64_t cookie = 0) {
  Work work;
  work.local = from.data() + from_offset;
  work.local_key = from.keys().local;
  work.remote_address = reinterpret_cast<uint64_t>(to.data() + to_offset);
  work.remote_key = to.keys().remote;
  work.length = length;
  work.immediate = immediate;
  work.cookie = cookie;
  return work;
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

// The peer of a FrameReader: a byte stream that the test writes by hand.
struct TestStream {
  Fd reader, writer;
  TestStream() {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    reader.reset(fds[0]);
    writer.reset(fds[1]);
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
