// Who moves a comm while its caller is away, and that nobody does beside its caller.
#include "message/comm_progress.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace slime::test {
namespace {

// Its counters are not atomic: two threads in it at once lose counts, and race.
class CountingComm : public CommProgress {
 public:
  CountingComm() { progress_when_idle(3, {}); }
  ~CountingComm() { leave(); }

  // How often it had been advanced in the background.
  uint64_t call(bool leaves_a_request_open) {
    const Call call(*this);
    ++moves_;
    open_ = leaves_a_request_open;
    return background_turns_;
  }
  BackgroundTask& task() { return *this; }
  uint64_t moves() const { return moves_; }

 private:
  bool has_requests() const override { return open_; }
  bool has_work() const override { return false; }
  void advance() override {
    EXPECT_FALSE(open_);
    ++moves_;
    ++background_turns_;
  }

  bool open_ = false;
  uint64_t moves_ = 0, background_turns_ = 0;
};

TEST(CommProgress, AnIdleCommAdvancesInTheBackground) {
  CountingComm comm;
  comm.call(false);
  EXPECT_EQ(comm.task().run_due(1'000'000), 101'000'000u);
  const uint64_t turns = comm.call(true);
  EXPECT_GE(turns, 3u) << "three turns poll all rails";
  comm.task().run_due(0);
  EXPECT_EQ(comm.call(true), turns) << "with a request open it is its caller's";
}

TEST(CommProgress, OnlyItsCallerAdvancesACommThatIsCalled) {
  CountingComm comm;
  std::atomic<bool> stop = false;
  std::thread other([&] {
    while (!stop) (void)comm.task().run_due(0);
  });
  uint64_t calls = 0, turns = 0;
  while (calls < 10'000 || turns < 10'000) turns = comm.call(++calls % 3 == 0);
  stop = true;
  other.join();
  turns = comm.call(true);
  EXPECT_EQ(comm.moves(), calls + 1 + turns);
}

}  // namespace
}  // namespace slime::test
