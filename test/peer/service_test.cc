// The thread of an engine, with an engine that is not there.
#include "peer/engine/service.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

namespace slime {
namespace {

TEST(StepPace, IsAnEighthOfTheTimeWithinBounds) {
  StepPace pace;
  const uint64_t begin_ns = 1'000'000'000;
  EXPECT_FALSE(pace.runs());
  EXPECT_EQ(pace.next_ns(begin_ns), begin_ns + StepPace::kShortestNs);
  EXPECT_TRUE(pace.runs());
  EXPECT_EQ(pace.next_ns(begin_ns + 800'000), begin_ns + 900'000);
  const uint64_t late_ns = begin_ns + 60'000'000'000;
  EXPECT_EQ(pace.next_ns(late_ns), late_ns + StepPace::kLongestNs);
  pace.end();
  EXPECT_EQ(pace.next_ns(late_ns), late_ns + StepPace::kShortestNs);
}

// Nobody can be accepted.
class NoDescriptors : public ServiceHost {
 public:
  std::vector<std::shared_ptr<Peer>> peers(uint32_t) override { return {}; }
  std::shared_ptr<Peer> peer_with_tag(uint64_t) override { return nullptr; }
  bool accept(bool*) override {
    ++calls;
    return false;
  }
  bool answer_callers() override { return false; }
  void call_back() override {}
  uint64_t end_overdue(uint64_t) override { return UINT64_MAX; }

  std::atomic<int64_t> calls = 0;
};

// Its thread sleeps for a millisecond each time, so it cannot call more often.
TEST(Service, AListenerThatStaysReadableTakesNoProcessor) {
  std::array<int, 2> ends;
  ASSERT_EQ(::pipe(ends.data()), 0);
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  NoDescriptors host;
  auto service = Service::open(host, 0, std::array{ends[0]}, {}, 60);
  ASSERT_TRUE(service);
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE((*service)->start());
  while (host.calls < 10) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  (*service)->stop();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begin);
  EXPECT_LE(host.calls, ms.count() + 2);
  for (const int end : ends) ::close(end);
}

}  // namespace
}  // namespace slime
