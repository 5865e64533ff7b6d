// What tests of several backends share: registered memory, works from one such place to another,
// posting, polling and waiting.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "transports/rail.h"

namespace slime::test {

inline constexpr int kTestPatienceMs = 60'000;  // for what must happen; nothing waits this long

inline bool eventually(const std::function<bool()>& condition, int patience_ms = kTestPatienceMs) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

// Memory registered on a rail while it lives.
class TestBuffer {
 public:
  TestBuffer(Rail& rail, size_t bytes, uint8_t fill = 0, uint8_t rights = kRemoteWrite)
      : rail_(rail), bytes_(bytes, std::byte{fill}) {
    MemoryRange range{bytes_.data(), bytes};
    range.rights = rights;
    auto keys = rail.register_memory(range);
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

inline std::vector<Done> poll_once(Channel& channel, Status* status, size_t room = 64) {
  std::vector<Done> done(room);
  size_t count = 0;
  *status = channel.poll(done, &count);
  done.resize(count);
  return done;
}

// All that is there now. Ends with the channel's status, kOk or its failure.
inline std::vector<Done> poll_all(Channel& channel, Status* status) {
  std::vector<Done> all;
  for (int idle = 0; idle < 3;) {
    const std::vector<Done> some = poll_once(channel, status);
    all.insert(all.end(), some.begin(), some.end());
    if (*status != Status::kOk) break;
    idle = some.empty() ? idle + 1 : 0;
  }
  return all;
}

inline Status post_one(Channel& channel, const Work& work) {
  size_t taken = 0;
  const Status status = channel.post({&work, 1}, &taken);
  EXPECT_EQ(taken, status == Status::kOk ? 1u : 0u);
  return status;
}

// Polls until the channel fails, and lets the world of its NICs move on between polls. Completions
// before the failure are appended to `done`.
template <typename World>
Error failure_of(World& world, Channel& channel, std::vector<Done>* done = nullptr) {
  Status status = Status::kOk;
  EXPECT_TRUE(eventually([&] {
    world.settle();
    for (const Done& one : poll_once(channel, &status)) {
      if (done != nullptr) done->push_back(one);
    }
    return status != Status::kOk;
  }));
  if (status == Status::kOk) return {Status::kOk, 0, "no failure"};
  EXPECT_EQ(channel.failure().status, status);
  return channel.failure();
}

}  // namespace slime::test
