// Memory of requests that were cancelled, or whose deadline has passed, at random moments: the
// program has it for itself at once, at this end always, and at the peer if the result says so. The
// peer's process is stopped at times, and goes on later. SLIME_REQUESTS=n makes so many requests.
#include <chrono>
#include <cstdio>
#include <deque>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "test/support/environment.h"
#include "test/support/other_process.h"

namespace slime {
namespace {

constexpr size_t kSlots = 32, kSlotBytes = 512 << 10;
constexpr size_t kBytes = kSlots * kSlotBytes;
constexpr size_t kOpen = 4;
constexpr uint64_t kRestNs = 3'000'000'000;  // longer than an end has to close a channel

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kRequests = 1'000;
#else
constexpr uint64_t kRequests = 5'000;
#endif

// A part of both memories, for one request at a time.
struct Slot {
  size_t index = 0;
  bool writes = false;
  slime_request request = 0;
  uint64_t cancel_ns = 0;       // when it is to be cancelled
  uint64_t rests_until_ns = 0;  // what it shows then has to be there still
  char here = 0, there = 0;     // 0: unknown
};

class Quiet : public WithOtherProcess {
 protected:
  Quiet() : WithOtherProcess(kBytes) {}
  std::span<char> part_here(const Slot& slot) {
    return std::span(mine).subspan(slot.index * kSlotBytes, kSlotBytes);
  }
  std::span<char> part_there(const Slot& slot) {
    return other.memory().subspan(slot.index * kSlotBytes, kSlotBytes);
  }
  uint64_t below(uint64_t bound) { return random_() % bound; }

  void check_rest(const Slot& slot) {
    EXPECT_TRUE(slot.here == 0 || all_are(part_here(slot), slot.here)) << "slot " << slot.index;
    EXPECT_TRUE(slot.there == 0 || all_are(part_there(slot), slot.there)) << "slot " << slot.index;
  }

  void begin(Slot& slot) {
    check_rest(slot);
    const uint64_t pieces = 1 + below(8), bytes = kSlotBytes / pieces / 64 * 64;
    slot.writes = below(2) == 0;
    set_all(part_here(slot), 'h');
    set_all(part_there(slot), 't');
    std::vector<slime_assignment> all;
    for (uint64_t i = 0; i < pieces; ++i) {
      const uint64_t offset = slot.index * kSlotBytes + i * bytes;
      all.push_back(
          {local, remote, offset, offset, i + 1 < pieces ? bytes : kSlotBytes - i * bytes});
    }
    const bool stops = !stopped_ && below(400) == 0;
    if (stops) stop();
    slime_extra extra = SLIME_EXTRA_INIT;
    const int64_t limit_ns = static_cast<int64_t>(1 + below(stops ? 50'000'000 : 1'000'000));
    const bool by_deadline = below(2) == 0;
    if (by_deadline) extra.deadline_ns = limit_ns;
    slot.cancel_ns = by_deadline ? UINT64_MAX : steady_now_ns() + static_cast<uint64_t>(limit_ns);
    ASSERT_EQ(slime_submit(here.engine, peer, slot.writes ? SLIME_WRITE : SLIME_READ, all.data(),
                           all.size(), &extra, &slot.request),
              SLIME_OK)
        << slime_last_error();
  }

  // True: it has ended, and its memory was overwritten.
  bool step(Slot& slot) {
    if (steady_now_ns() >= slot.cancel_ns) {
      slot.cancel_ns = UINT64_MAX;
      here.cancel(slot.request);
    }
    slime_result result = SLIME_RESULT_INIT;
    const int tested = slime_test(here.engine, slot.request, &result);
    if (tested == SLIME_AGAIN) return false;
    EXPECT_EQ(tested, SLIME_OK) << slime_last_error();
    const bool ok = result.status == SLIME_OK;
    const char moved = slot.writes ? 'h' : 't';
    if (ok) {
      EXPECT_TRUE(all_are(part_here(slot), moved) && all_are(part_there(slot), moved));
      EXPECT_EQ(result.quiet, 1);
    } else {
      EXPECT_TRUE(result.status == SLIME_ERR_CANCELLED || result.status == SLIME_ERR_TIMEOUT)
          << result.text;
      EXPECT_TRUE(slot.writes || result.quiet) << "a read writes nothing at the peer";
    }
    set_all(part_here(slot), slot.here = 'q');
    slot.there = 0;
    if (result.quiet) set_all(part_there(slot), slot.there = 'Q');
    slot.rests_until_ns = steady_now_ns() + (ok ? 0 : stopped_ ? kRestNs : kRestNs / 100);
    ++(ok ? done_ : result.quiet ? quiet_ : loud_);
    return true;
  }

  void stop() {
    other.signal(SIGSTOP);
    stopped_ = true;
    // Shorter and longer than its engine has to end the rails.
    go_on_ns_ = steady_now_ns() + 1'000'000 * below(1'300);
    ++stops_;
  }
  void go_on() {
    if (!stopped_ || steady_now_ns() < go_on_ns_) return;
    other.signal(SIGCONT);
    stopped_ = false;
  }

  bool stopped_ = false;
  uint64_t go_on_ns_ = 0;
  uint64_t done_ = 0, quiet_ = 0, loud_ = 0, stops_ = 0;

 private:
  std::mt19937_64 random_{test::from_environment("SLIME_SEED", 1)};
};

TEST_F(Quiet, IsTheMemoryOfRequestsThatWereGivenUp) {
  std::deque<Slot> resting;
  for (size_t i = 0; i < kSlots; ++i) resting.push_back({.index = i});
  std::vector<Slot> open;
  const test::Effort effort("SLIME_REQUESTS", kRequests);
  uint64_t begun = 0;
  while (!HasFailure() && (effort.goes_on(begun) || !open.empty())) {
    go_on();
    const bool may_begin = effort.goes_on(begun) && open.size() < kOpen;
    if (may_begin && !resting.empty() && resting.front().rests_until_ns <= steady_now_ns()) {
      open.push_back(resting.front());
      resting.pop_front();
      begin(open.back());
      ++begun;
    }
    std::erase_if(open, [&](Slot& slot) {
      if (!step(slot)) return false;
      resting.push_back(slot);
      return true;
    });
  }
  go_on_ns_ = 0;
  go_on();
  std::this_thread::sleep_for(std::chrono::nanoseconds(kRestNs));
  for (const Slot& slot : resting) check_rest(slot);
  std::printf("%llu requests: %llu done, %llu given up and quiet, %llu not quiet, %llu stops\n",
              static_cast<unsigned long long>(begun), static_cast<unsigned long long>(done_),
              static_cast<unsigned long long>(quiet_), static_cast<unsigned long long>(loud_),
              static_cast<unsigned long long>(stops_));
  EXPECT_TRUE(begun < kRequests || quiet_ > begun / 100);
}

}  // namespace
}  // namespace slime
