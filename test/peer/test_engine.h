// An engine as a C program opens it, over tcp and the loopback interface. Memory that it registers
// is declared before it.
#pragma once

#include <gtest/gtest.h>
#include <slime/slime.h>

#include <cstdlib>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace slime {

struct TestEngine {
  explicit TestEngine(const char* settings = "ifname=lo") : TestEngine(with(settings)) {}
  explicit TestEngine(const slime_options& options) {
    EXPECT_EQ(slime_open(&options, &engine), SLIME_OK) << slime_last_error();
  }
  // One, two or three threads, the same in each run of a test; SLIME_ENGINE_THREADS: by hand.
  static slime_options with(const char* settings) {
    const char* const threads = std::getenv("SLIME_ENGINE_THREADS");
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    const size_t of_test = 1 + (test != nullptr ? std::hash<std::string>()(test->name()) : 0) % 3;
    slime_options options = SLIME_OPTIONS_INIT;
    options.settings = settings;
    options.threads = static_cast<uint32_t>(threads != nullptr ? std::atoi(threads) : of_test);
    return options;
  }
  ~TestEngine() {
    if (engine != nullptr) close();
  }
  void close() {
    EXPECT_EQ(slime_close(engine), SLIME_OK);
    engine = nullptr;
  }

  std::vector<char> address() {
    std::vector<char> blob(SLIME_ADDRESS_BYTES);
    size_t bytes = blob.size();
    EXPECT_EQ(slime_address(engine, blob.data(), &bytes), SLIME_OK) << slime_last_error();
    blob.resize(bytes);
    return blob;
  }
  slime_region add(std::span<char> memory) {
    slime_region region = 0;
    EXPECT_EQ(slime_register(engine, memory.data(), memory.size(), nullptr, &region), SLIME_OK)
        << slime_last_error();
    return region;
  }
  std::vector<char> blob_of(slime_region region) {
    std::vector<char> blob(SLIME_REGION_BYTES);
    EXPECT_EQ(slime_advertise(engine, region, blob.data()), SLIME_OK) << slime_last_error();
    return blob;
  }

  slime_peer know(const std::vector<char>& address) {
    slime_peer peer = 0;
    EXPECT_EQ(slime_add_peer(engine, address.data(), address.size(), &peer), SLIME_OK)
        << slime_last_error();
    return peer;
  }
  slime_peer know(TestEngine& other) { return know(other.address()); }
  slime_remote remote(slime_peer peer, const std::vector<char>& region) {
    slime_remote remote = 0;
    EXPECT_EQ(slime_import(engine, peer, region.data(), &remote), SLIME_OK) << slime_last_error();
    return remote;
  }
  void remove(slime_peer peer) {
    EXPECT_EQ(slime_remove_peer(engine, peer), SLIME_OK) << slime_last_error();
  }
  slime_peer_info info(slime_peer peer) {
    slime_peer_info info = SLIME_PEER_INFO_INIT;
    EXPECT_EQ(slime_peer_state(engine, peer, &info), SLIME_OK) << slime_last_error();
    return info;
  }

  slime_request begin(slime_peer peer, int op, const slime_assignment& one,
                      int64_t deadline_ns = 0) {
    slime_extra extra = SLIME_EXTRA_INIT;
    extra.deadline_ns = deadline_ns;
    slime_request request = 0;
    EXPECT_EQ(slime_submit(engine, peer, op, &one, 1, &extra, &request), SLIME_OK)
        << slime_last_error();
    return request;
  }
  // The result's text is valid until the next call of the thread.
  slime_result end(slime_request request, int64_t timeout_ns = 60'000'000'000) {
    slime_result result = SLIME_RESULT_INIT;
    EXPECT_EQ(slime_wait(engine, request, timeout_ns, &result), SLIME_OK) << slime_last_error();
    return result;
  }
  void cancel(slime_request request) {
    EXPECT_EQ(slime_cancel(engine, request), SLIME_OK) << slime_last_error();
  }
  slime_result run(slime_peer peer, int op, const slime_assignment& one, int64_t deadline_ns = 0) {
    return end(begin(peer, op, one, deadline_ns));
  }

  slime_request notify(slime_peer peer, const std::string& text, int64_t deadline_ns = 0) {
    slime_extra extra = SLIME_EXTRA_INIT;
    extra.deadline_ns = deadline_ns;
    slime_request request = 0;
    EXPECT_EQ(slime_notify(engine, peer, text.data(), text.size(), &extra, &request), SLIME_OK)
        << slime_last_error();
    return request;
  }
  // `text` stays as it is until the request is done.
  slime_request send(slime_peer peer, const std::string& text, uint64_t tag,
                     int64_t deadline_ns = 0) {
    slime_extra extra = SLIME_EXTRA_INIT;
    extra.deadline_ns = deadline_ns;
    slime_request request = 0;
    EXPECT_EQ(slime_send(engine, peer, text.data(), text.size(), tag, &extra, &request), SLIME_OK)
        << slime_last_error();
    return request;
  }
  slime_request receive(slime_peer peer, std::string& room, uint64_t tag,
                        uint64_t mask = UINT64_MAX, int64_t deadline_ns = 0) {
    slime_extra extra = SLIME_EXTRA_INIT;
    extra.deadline_ns = deadline_ns;
    slime_request request = 0;
    EXPECT_EQ(slime_recv(engine, peer, room.data(), room.size(), tag, mask, &extra, &request),
              SLIME_OK)
        << slime_last_error();
    return request;
  }
  // Notifications that are here: who sent them, and their bytes.
  std::vector<std::pair<slime_peer, std::string>> fetch(size_t most) {
    std::vector<slime_notification> room(most);
    size_t count = most;
    EXPECT_EQ(slime_notifications(engine, room.data(), &count), SLIME_OK) << slime_last_error();
    std::vector<std::pair<slime_peer, std::string>> fetched;
    for (size_t i = 0; i < count; ++i) {
      const char* const data = static_cast<const char*>(room[i].data);
      fetched.emplace_back(room[i].peer, std::string(data, room[i].bytes));
      EXPECT_EQ(slime_release(engine, room[i].handle), SLIME_OK);
    }
    return fetched;
  }

  slime_engine* engine = nullptr;
};

}  // namespace slime
