// How a program learns of the ends of requests that it does not wait for.
#include <poll.h>

#include <atomic>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "peer/engine/completion.h"
#include "test/peer/test_engine.h"

namespace slime {
namespace {

constexpr size_t kBytes = 4096;
constexpr int kPatienceMs = 60'000;

class CompletionTest : public testing::Test {
 protected:
  CompletionTest()
      : local_(here_.add(mine_)),
        peer_(here_.know(there_)),
        remote_(here_.remote(peer_, there_.blob_of(there_.add(theirs_)))) {}

  static slime_extra listed(size_t number) {
    slime_extra extra = SLIME_EXTRA_INIT;
    extra.flags = SLIME_COMPLETES;
    extra.user = reinterpret_cast<void*>(number);
    return extra;
  }
  slime_request write(const slime_extra& extra) {
    const slime_assignment all = {local_, remote_, 0, 0, kBytes};
    slime_request request = 0;
    EXPECT_EQ(slime_submit(here_.engine, peer_, SLIME_WRITE, &all, 1, &extra, &request), SLIME_OK)
        << slime_last_error();
    return request;
  }
  int descriptor() {
    int descriptor = -1;
    EXPECT_EQ(slime_event_fd(here_.engine, SLIME_EVENT_COMPLETED | SLIME_EVENT_NOTIFICATIONS,
                             &descriptor),
              SLIME_OK)
        << slime_last_error();
    return descriptor;
  }
  bool readable(int timeout_ms) {
    pollfd one = {descriptor(), POLLIN, 0};
    return ::poll(&one, 1, timeout_ms) == 1;
  }
  std::vector<slime_completion> fetch(size_t most) {
    std::vector<slime_completion> all(most);
    size_t count = most;
    EXPECT_EQ(slime_completed(here_.engine, all.data(), &count), SLIME_OK) << slime_last_error();
    all.resize(count);
    return all;
  }
  // The next ones, that come within the patience of the test.
  std::vector<slime_completion> await(size_t most) {
    for (;;) {
      EXPECT_TRUE(readable(kPatienceMs));
      auto all = fetch(most);
      if (!all.empty() || testing::Test::HasFailure()) return all;
    }
  }

  std::vector<char> mine_ = std::vector<char>(kBytes, 'm'), theirs_ = std::vector<char>(kBytes);
  TestEngine here_, there_;
  slime_region local_;
  slime_peer peer_;
  slime_remote remote_;
};

TEST_F(CompletionTest, ToldOnceEachWithTheProgramsPointer) {
  constexpr size_t kRequests = 1000;
  for (size_t i = 1; i <= kRequests; ++i) write(listed(i));
  std::vector<bool> told(kRequests + 1);
  for (size_t count = 0; count < kRequests && !HasFailure();) {
    for (const slime_completion& one : await(7)) {
      const auto number = reinterpret_cast<size_t>(one.user);
      ASSERT_TRUE(number >= 1 && number <= kRequests && !told[number]) << number;
      told[number] = true;
      EXPECT_EQ(one.status, SLIME_OK) << one.text;
      EXPECT_EQ(one.bytes, kBytes);
      EXPECT_EQ(slime_test(here_.engine, one.request, nullptr), SLIME_ERR_INVALID);
      ++count;
    }
  }
  EXPECT_TRUE(fetch(1).empty());
  EXPECT_FALSE(readable(0));
}

TEST_F(CompletionTest, WhoTestsOrReleasesARequestTakesItsEnd) {
  EXPECT_EQ(here_.end(write(listed(1))).status, SLIME_OK);
  EXPECT_EQ(slime_release(here_.engine, write(listed(2))), SLIME_OK);
  write(listed(3));
  const auto all = await(3);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].user, reinterpret_cast<void*>(3));
}

TEST_F(CompletionTest, AListOrAFunctionButNotBoth) {
  slime_extra extra = listed(1);
  extra.callback = [](void*, slime_request, const slime_result*) {};
  slime_request request = 0;
  EXPECT_EQ(slime_notify(here_.engine, peer_, "x", 1, &extra, &request), SLIME_ERR_INVALID);
}

TEST_F(CompletionTest, TellsOfErrors) {
  std::string room(10, ' ');
  slime_extra extra = listed(1);
  extra.deadline_ns = 20'000'000;
  slime_request request = 0;
  ASSERT_EQ(slime_expect(here_.engine, peer_, 5, 1, &extra, &request), SLIME_OK);
  extra.user = reinterpret_cast<void*>(2);
  ASSERT_EQ(
      slime_recv(here_.engine, SLIME_ANY_PEER, room.data(), room.size(), 0, 0, &extra, &request),
      SLIME_OK);
  const auto first = await(1), second = await(1);
  for (const auto& all : {first, second}) {
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].status, SLIME_ERR_TIMEOUT);
  }
  EXPECT_NE(first[0].user, second[0].user);
  EXPECT_NE(std::string(second[0].text).find("its deadline has passed"), std::string::npos);
}

TEST_F(CompletionTest, NotificationsMakeTheDescriptorReadable) {
  EXPECT_FALSE(readable(0));
  const slime_peer back = there_.know(here_);
  EXPECT_EQ(there_.end(there_.notify(back, "hello")).status, SLIME_OK);
  EXPECT_TRUE(readable(kPatienceMs));
  EXPECT_EQ(here_.fetch(8).size(), 1u);
  EXPECT_FALSE(readable(0));
}

TEST(Completions, HandlesThatWereTakenDoNotAddUp) {
  constexpr uint64_t kOpen = 5;
  ReadyFd ready;
  Completions completions(
      ready, std::pmr::get_default_resource(), [] {},
      [](uint64_t handle) { return handle == kOpen; });
  for (uint64_t handle = 1; handle < 10 * Completions::kMostStale; ++handle) {
    completions.on_end(handle, false);
  }
  size_t kept = 0;
  bool has_open = false;
  while (const uint64_t handle = completions.next_to_fetch()) {
    ++kept;
    has_open |= handle == kOpen;
  }
  EXPECT_LE(kept, Completions::kMostStale);
  EXPECT_TRUE(has_open);
}

// A machine may be so slow that time begins a request before the next one does.
TEST_F(CompletionTest, MoreWaitsForTheNextOne) {
  constexpr uint64_t kPauseNs = 50'000'000;
  ASSERT_EQ(here_.end(write(listed(0))).status, SLIME_OK);  // there is a link
  // It has no traffic any more, so the engine looks at it every 5 s.
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  slime_extra extra = listed(1);
  extra.flags |= SLIME_MORE;
  bool waited = false;
  for (int i = 0; i < 100 && !waited; ++i) {
    write(extra);
    std::this_thread::sleep_for(std::chrono::nanoseconds(kPauseNs));
    write(listed(2));
    for (int told = 0; told < 2 && !HasFailure();) {
      for (const slime_completion& one : await(2)) {
        if (one.user == extra.user) waited = one.queued_ns >= kPauseNs;
        ++told;
      }
    }
    if (!waited) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  }
  EXPECT_TRUE(waited);
  EXPECT_EQ(mine_, theirs_);
  EXPECT_EQ(here_.end(write(extra)).status, SLIME_OK);  // a wait begins it
  write(extra);
  EXPECT_EQ(await(1).size(), 1u);  // and so does time
}

// Callbacks

struct Counted {
  slime_engine* engine = nullptr;
  slime_assignment assignment = {};
  slime_peer peer = 0;
  std::atomic<int> calls = 0, good = 0, left = 0;
  std::atomic<int> refused_waits = 0;

  static void on_end(void* user, slime_request request, const slime_result* result) {
    auto& self = *static_cast<Counted*>(user);
    if (result->status == SLIME_OK && request != 0) ++self.good;
    slime_request other = 0;
    if (--self.left >= 0) {
      const slime_extra extra = self.extra();
      EXPECT_EQ(
          slime_submit(self.engine, self.peer, SLIME_WRITE, &self.assignment, 1, &extra, &other),
          SLIME_OK)
          << slime_last_error();
    }
    if (slime_wait(self.engine, other, -1, nullptr) == SLIME_ERR_INVALID) ++self.refused_waits;
    ++self.calls;
  }
  slime_extra extra() {
    slime_extra extra = SLIME_EXTRA_INIT;
    extra.callback = on_end;
    extra.user = this;
    return extra;
  }
  void await(int count) const {
    for (int ms = 0; calls < count && ms < kPatienceMs; ++ms) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(calls, count);
  }
};

TEST_F(CompletionTest, ACallbackMayCallBackIn) {
  Counted counted;
  counted.engine = here_.engine;
  counted.assignment = {local_, remote_, 0, 0, kBytes};
  counted.peer = peer_;
  counted.left = 999;
  write(counted.extra());
  counted.await(1000);
  EXPECT_EQ(counted.good, 1000);
  EXPECT_EQ(counted.refused_waits, 1000);
}

TEST_F(CompletionTest, ACallbackIsNotCalledAfterRelease) {
  for (int i = 0; i < 200; ++i) {
    Counted counted;
    counted.engine = here_.engine;
    const slime_request request = write(counted.extra());
    if (i % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(i));
    const bool released = slime_release(here_.engine, request) == SLIME_OK;
    if (!released) counted.await(1);
    EXPECT_EQ(counted.calls, released ? 0 : 1);
  }
}

// The callback, or the thread that waits, but not both.
TEST_F(CompletionTest, OneIsToldOfTheEnd) {
  for (int i = 0; i < 500 && !HasFailure(); ++i) {
    Counted counted;
    counted.engine = here_.engine;
    const int waited = slime_wait(here_.engine, write(counted.extra()), -1, nullptr);
    if (waited != SLIME_OK) counted.await(1);
    EXPECT_EQ(counted.calls, waited == SLIME_OK ? 0 : 1);
  }
}

// What a program does that wants to go on.
struct Reopener {
  slime_engine* engine = nullptr;
  std::vector<char> address;
  std::vector<int> statuses;

  static void on_end(void* user, slime_request, const slime_result*) {
    auto& self = *static_cast<Reopener*>(user);
    slime_peer peer = 0;
    slime_request request = 0;
    char blob[SLIME_ADDRESS_BYTES];
    size_t bytes = sizeof blob;
    self.statuses = {
        slime_add_peer(self.engine, self.address.data(), self.address.size(), &peer),
        slime_address(self.engine, blob, &bytes),
        slime_expect(self.engine, SLIME_ANY_PEER, 1, 1, nullptr, &request),
        slime_close(self.engine),
    };
  }
};

TEST_F(CompletionTest, ACallbackOfACloseBeginsNothing) {
  Reopener reopener{here_.engine, there_.address(), {}};
  slime_extra extra = SLIME_EXTRA_INIT;
  extra.callback = Reopener::on_end;
  extra.user = &reopener;
  slime_request request = 0;
  ASSERT_EQ(slime_expect(here_.engine, peer_, 1, 1, &extra, &request), SLIME_OK);
  here_.close();
  const std::vector<int> expected = {SLIME_ERR_INVALID, SLIME_OK, SLIME_ERR_INVALID,
                                     SLIME_ERR_INVALID};
  EXPECT_EQ(reopener.statuses, expected);
}

TEST_F(CompletionTest, CloseCallsBackForWhatIsOpen) {
  Counted counted;
  counted.engine = here_.engine;
  counted.peer = peer_;
  counted.left = 0;
  const slime_extra extra = counted.extra();
  slime_request request = 0;
  char room[8];
  ASSERT_EQ(slime_expect(here_.engine, SLIME_ANY_PEER, 1, 1, &extra, &request), SLIME_OK);
  ASSERT_EQ(slime_expect(here_.engine, peer_, 2, 1, &extra, &request), SLIME_OK);
  ASSERT_EQ(slime_recv(here_.engine, peer_, room, sizeof room, 0, 0, &extra, &request), SLIME_OK);
  here_.close();
  EXPECT_EQ(counted.calls, 3);
  EXPECT_EQ(counted.good, 0);
}

struct Immediates {
  std::atomic<int> count = 0;
  std::atomic<uint64_t> sum = 0;
  static void on_immediate(void* user, slime_peer peer, uint32_t immediate) {
    auto& self = *static_cast<Immediates*>(user);
    self.sum += peer != 0 ? immediate : 0;
    ++self.count;
  }
};

TEST(UnexpectedImmediates, GoToTheFunctionForThem) {
  Immediates immediates;
  slime_options options = SLIME_OPTIONS_INIT;
  options.settings = "ifname=lo";
  options.on_immediate = Immediates::on_immediate;
  options.user = &immediates;
  TestEngine here, there(options);
  std::vector<char> mine(8), theirs(8);
  const slime_region local = here.add(mine);
  const slime_peer peer = here.know(there);
  const slime_remote remote = here.remote(peer, there.blob_of(there.add(theirs)));
  const slime_assignment none = {local, remote, 0, 0, 0};
  slime_request expected = 0;
  ASSERT_EQ(slime_expect(there.engine, SLIME_ANY_PEER, 3, 1, nullptr, &expected), SLIME_OK);
  for (uint32_t i = 1; i <= 100; ++i) {
    slime_extra extra = SLIME_EXTRA_INIT;
    extra.flags = SLIME_WITH_IMMEDIATE;
    extra.immediate = i;
    slime_request request = 0;
    ASSERT_EQ(slime_submit(here.engine, peer, SLIME_WRITE, &none, 1, &extra, &request), SLIME_OK);
    EXPECT_EQ(here.end(request).status, SLIME_OK);
  }
  EXPECT_EQ(there.end(expected).status, SLIME_OK);
  for (int ms = 0; immediates.count < 99 && ms < kPatienceMs; ++ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(immediates.sum, 5050u - 3u);
}

}  // namespace
}  // namespace slime
