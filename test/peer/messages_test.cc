// Immediates and notifications between two engines of one process, over tcp.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "test/peer/test_engine.h"

namespace slime {
namespace {

constexpr int64_t kMs = 1'000'000;

class MessagesTest : public testing::Test {
 protected:
  slime_request notify(const std::string& text, int64_t deadline_ns = 0) {
    return here.notify(peer, text, deadline_ns);
  }
  void expect_ok(slime_request request) {
    const slime_result result = here.end(request);
    EXPECT_EQ(result.status, SLIME_OK) << result.text;
  }
  static slime_request expect(TestEngine& engine, slime_peer peer, uint32_t immediate,
                              uint64_t count, int64_t deadline_ns = 0) {
    slime_extra extra = SLIME_EXTRA_INIT;
    extra.deadline_ns = deadline_ns;
    slime_request request = 0;
    EXPECT_EQ(slime_expect(engine.engine, peer, immediate, count, &extra, &request), SLIME_OK)
        << slime_last_error();
    return request;
  }
  slime_request write_with(uint32_t immediate, size_t bytes) {
    slime_extra extra = SLIME_EXTRA_INIT;
    extra.flags = SLIME_WITH_IMMEDIATE;
    extra.immediate = immediate;
    return submit(extra, bytes);
  }
  slime_request submit(const slime_extra& extra, size_t bytes, int op = SLIME_WRITE) {
    const slime_assignment one = {local, remote, 0, 0, bytes};
    slime_request request = 0;
    EXPECT_EQ(slime_submit(here.engine, peer, op, &one, 1, &extra, &request), SLIME_OK)
        << slime_last_error();
    return request;
  }
  uint64_t counter_at(size_t offset) {
    return std::atomic_ref(*reinterpret_cast<uint64_t*>(theirs.data() + offset))
        .load(std::memory_order_acquire);
  }
  static bool is_open(TestEngine& engine, slime_request request) {
    return slime_wait(engine.engine, request, 20 * kMs, nullptr) == SLIME_AGAIN;
  }

  std::vector<char> mine = std::vector<char>(1 << 20, 'm');
  std::vector<char> theirs = std::vector<char>(1 << 20, 't');
  std::vector<char> more = std::vector<char>(4096, 'o');
  TestEngine here, there;
  const slime_region local = here.add(mine), owned = there.add(theirs);
  const slime_peer peer = here.know(there);
  const slime_remote remote = here.remote(peer, there.blob_of(owned));
};

// Any size, whole, in order; the receiver can answer a peer that it did not add.
TEST_F(MessagesTest, NotificationsOfAnySizeComeInOrder) {
  const std::vector<size_t> sizes = {0,    1,    304,  305,     5000,    5103,
                                     5104, 5105, 5106, 1 << 16, 1 << 20, 64 << 20};
  std::vector<std::string> sent;
  std::vector<slime_request> requests;
  for (const size_t size : sizes) {
    std::string text(size, 0);
    std::iota(text.begin(), text.end(), static_cast<char>(size));
    requests.push_back(notify(text));
    sent.push_back(std::move(text));
  }
  std::vector<std::pair<slime_peer, std::string>> came;
  while (came.size() < sent.size()) {
    for (auto& one : there.fetch(2)) came.push_back(std::move(one));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (size_t i = 0; i < sent.size(); ++i) {
    expect_ok(requests[i]);
    EXPECT_TRUE(came[i].second == sent[i]) << sent[i].size();
  }
  EXPECT_TRUE(there.fetch(1).empty());
  slime_request answer = 0;
  ASSERT_EQ(slime_notify(there.engine, came[0].first, "back", 4, nullptr, &answer), SLIME_OK);
  EXPECT_EQ(there.end(answer).status, SLIME_OK);
  const auto back = here.fetch(1);
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].second, "back");
  EXPECT_EQ(back[0].first, peer);
}

// The program of the receiver fetches nothing, and nothing else waits for that.
TEST_F(MessagesTest, NotificationsThatNobodyFetchesStopNothingElse) {
  constexpr size_t kKept = 4096, kMore = 100;
  std::vector<slime_request> requests;
  for (size_t i = 0; i < kKept + kMore; ++i) requests.push_back(notify(std::to_string(i)));
  for (size_t i = 0; i < kKept; ++i) expect_ok(requests[i]);
  EXPECT_TRUE(is_open(here, requests[kKept]));
  expect_ok(write_with(7, 4096));
  EXPECT_EQ(there.end(expect(there, SLIME_ANY_PEER, 7, 1)).status, SLIME_OK);
  const slime_remote again = here.remote(peer, there.blob_of(there.add(more)));
  EXPECT_EQ(here.run(peer, SLIME_READ, {local, again, 0, 0, 4096}).status, SLIME_OK);
  const slime_result late = here.end(notify("late", 50 * kMs));
  EXPECT_EQ(late.status, SLIME_ERR_TIMEOUT) << late.text;
  for (size_t next = 0; next < requests.size();) {
    for (const auto& one : there.fetch(64)) EXPECT_EQ(one.second, std::to_string(next++));
  }
  for (size_t i = kKept; i < requests.size(); ++i) expect_ok(requests[i]);
  EXPECT_TRUE(there.fetch(1).empty());  // the late one was on no link yet
}

TEST_F(MessagesTest, ANotificationComesAfterItsBytes) {
  for (int round = 0; round < 200; ++round) {
    const char value = static_cast<char>(round);
    std::ranges::fill(mine, value);
    slime_extra extra = SLIME_EXTRA_INIT;
    extra.flags = SLIME_WITH_NOTIFICATION | SLIME_WITH_IMMEDIATE;
    extra.immediate = static_cast<uint32_t>(round);
    extra.notification = &value;
    extra.notification_bytes = 1;
    const slime_request request = submit(extra, 100'000);
    auto came = there.fetch(1);
    while (came.empty()) came = there.fetch(1);
    EXPECT_EQ(came[0].second, std::string(1, value));
    EXPECT_EQ(std::count(theirs.begin(), theirs.begin() + 100'000, value), 100'000);
    EXPECT_EQ(there.end(expect(there, came[0].first, extra.immediate, 1)).status, SLIME_OK);
    expect_ok(request);
  }
}

TEST_F(MessagesTest, AReadCanTellItsOwnerToo) {
  slime_extra extra = SLIME_EXTRA_INIT;
  extra.flags = SLIME_WITH_IMMEDIATE;
  extra.immediate = UINT32_MAX;
  expect_ok(submit(extra, 0, SLIME_READ));
  expect_ok(submit(extra, mine.size(), SLIME_READ));
  EXPECT_TRUE(mine == theirs);
  EXPECT_EQ(there.end(expect(there, SLIME_ANY_PEER, UINT32_MAX, 2)).status, SLIME_OK);
}

TEST_F(MessagesTest, ExpectationsCountWhatComesBeforeAndAfter) {
  expect_ok(write_with(1, 8));
  expect_ok(write_with(2, 8));
  const slime_request three = expect(there, SLIME_ANY_PEER, 1, 3);
  const slime_request fourth = expect(there, SLIME_ANY_PEER, 1, 1);
  expect_ok(write_with(1, 8));
  EXPECT_TRUE(is_open(there, three));
  expect_ok(write_with(1, 8));
  EXPECT_EQ(there.end(three).status, SLIME_OK);
  EXPECT_TRUE(is_open(there, fourth));
  EXPECT_EQ(slime_release(there.engine, fourth), SLIME_OK);
  expect_ok(write_with(1, 8));  // is kept: the expectation was dropped
  EXPECT_EQ(slime_forget(there.engine, SLIME_ANY_PEER, 2), SLIME_OK);
  const slime_result none = there.end(expect(there, SLIME_ANY_PEER, 2, 1, 20 * kMs));
  EXPECT_EQ(none.status, SLIME_ERR_TIMEOUT);
  EXPECT_NE(std::strstr(none.text, "immediates"), nullptr) << none.text;
  EXPECT_EQ(there.end(expect(there, SLIME_ANY_PEER, 1, 1)).status, SLIME_OK);
}

TEST_F(MessagesTest, TooManyKeptImmediatesAreRefusedAndNothingElse) {
  constexpr uint32_t kKept = 65'536;
  std::vector<slime_request> requests;
  for (uint32_t i = 0; i < kKept; ++i) {
    requests.push_back(write_with(i, 0));
    if (requests.size() < 512) continue;
    for (const slime_request request : std::exchange(requests, {})) expect_ok(request);
  }
  for (int round = 0; round < 40; ++round) {
    const slime_request refused = write_with(kKept, 0), known = write_with(kKept - 1, 0);
    const slime_result result = here.end(refused);
    EXPECT_EQ(result.status, SLIME_ERR_REMOTE);
    EXPECT_NE(std::strstr(result.text, "immediates"), nullptr) << result.text;
    expect_ok(known);
  }
  EXPECT_EQ(slime_forget(there.engine, SLIME_ANY_PEER, 0), SLIME_OK);
  expect_ok(write_with(kKept, 0));
}

// Strong ones wait for messages too, and for each other.
TEST_F(MessagesTest, AStrongSignalComesAfterAllThatWasBefore) {
  std::fill(theirs.begin(), theirs.begin() + 8, 0);
  std::vector<slime_request> kept;
  for (size_t i = 0; i < 4096; ++i) kept.push_back(notify("x"));
  for (const slime_request request : kept) expect_ok(request);
  const slime_request waits = notify("one more");
  std::array<slime_request, 2> strong = {};
  for (slime_request& request : strong) {
    ASSERT_EQ(slime_signal(here.engine, peer, remote, 0, 1, 1, nullptr, &request), SLIME_OK);
  }
  for (const slime_request request : strong) EXPECT_TRUE(is_open(here, request));
  EXPECT_EQ(counter_at(0), 0u);
  EXPECT_EQ(there.fetch(1).size(), 1u);
  expect_ok(waits);
  for (const slime_request request : strong) expect_ok(request);
  EXPECT_EQ(counter_at(0), 2u);
}

// Each addition once; a strong one after the writes before it.
TEST_F(MessagesTest, SignalsAdd) {
  constexpr size_t kCounter = 8, kData = 1 << 19;
  std::fill(theirs.begin(), theirs.begin() + 64, 0);
  const auto counter = [&] { return counter_at(kCounter); };
  const auto signal = [&](uint64_t add, int strong) {
    slime_request request = 0;
    EXPECT_EQ(slime_signal(here.engine, peer, remote, kCounter, add, strong, nullptr, &request),
              SLIME_OK)
        << slime_last_error();
    return request;
  };
  std::vector<slime_request> requests;
  for (uint64_t i = 1; i <= 1000; ++i) requests.push_back(signal(i, 0));
  for (const slime_request request : requests) expect_ok(request);
  EXPECT_EQ(counter(), 500'500u);
  expect_ok(signal(UINT64_MAX, 0));  // less one
  EXPECT_EQ(counter(), 500'499u);
  for (int round = 1; round <= 20; ++round) {
    const char value = static_cast<char>(round);
    std::ranges::fill(mine, value);
    const uint64_t before = counter();
    const slime_request write = here.begin(peer, SLIME_WRITE, {local, remote, 64, 64, kData});
    const slime_request after = signal(1, 1);
    while (counter() == before) std::this_thread::yield();
    EXPECT_EQ(std::count(theirs.begin() + 64, theirs.begin() + 64 + kData, value),
              static_cast<ptrdiff_t>(kData));
    expect_ok(write);
    expect_ok(after);
  }
  EXPECT_EQ(slime_deregister(there.engine, owned, -1), SLIME_OK);
  const slime_result refused = here.end(signal(1, 0));
  EXPECT_EQ(refused.status, SLIME_ERR_REMOTE);
  EXPECT_NE(std::strstr(refused.text, "no such region"), nullptr) << refused.text;
}

TEST_F(MessagesTest, BadArgumentsAreRefused) {
  slime_request request = 0;
  slime_extra extra = SLIME_EXTRA_INIT;
  const auto notifies = [&](slime_peer to, const void* data, size_t bytes) {
    return slime_notify(here.engine, to, data, bytes, &extra, &request);
  };
  EXPECT_EQ(notifies(peer + 1, "x", 1), SLIME_ERR_INVALID);
  EXPECT_EQ(notifies(peer, nullptr, 1), SLIME_ERR_INVALID);
  std::vector<char> long_one(SLIME_NOTIFICATION_BYTES + 1);
  EXPECT_EQ(notifies(peer, long_one.data(), long_one.size()), SLIME_ERR_INVALID);
  EXPECT_NE(std::strstr(slime_last_error(), "67108864"), nullptr) << slime_last_error();
  extra.flags = SLIME_WITH_IMMEDIATE;
  EXPECT_EQ(notifies(peer, "x", 1), SLIME_ERR_INVALID);
  EXPECT_EQ(slime_expect(here.engine, peer, 1, 1, &extra, &request), SLIME_ERR_INVALID);
  extra.flags = 0x80000000;
  EXPECT_EQ(notifies(peer, "x", 1), SLIME_ERR_INVALID);
  EXPECT_EQ(slime_expect(here.engine, peer, 1, 0, nullptr, &request), SLIME_ERR_INVALID);
  EXPECT_EQ(slime_expect(here.engine, local, 1, 1, nullptr, &request), SLIME_ERR_INVALID);
  EXPECT_EQ(slime_forget(here.engine, local, 1), SLIME_ERR_INVALID);
  const auto signals = [&](slime_remote to, uint64_t offset) {
    return slime_signal(here.engine, peer, to, offset, 1, 0, nullptr, &request);
  };
  EXPECT_EQ(signals(remote, 4), SLIME_ERR_INVALID);
  EXPECT_EQ(signals(remote, theirs.size()), SLIME_ERR_INVALID);
  EXPECT_EQ(signals(remote, UINT64_MAX - 7), SLIME_ERR_INVALID);
  EXPECT_EQ(signals(local, 0), SLIME_ERR_INVALID);
  size_t one = 1;
  EXPECT_EQ(slime_notifications(here.engine, nullptr, &one), SLIME_ERR_INVALID);
  one = 0;
  EXPECT_EQ(slime_notifications(here.engine, nullptr, &one), SLIME_OK);
}

}  // namespace
}  // namespace slime
