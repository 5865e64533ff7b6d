// Who moves a comm while its caller is away, and that nobody does beside its caller.
#include "engine/comm_progress.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace slime::test {
namespace {

// Its counters are not atomic: two threads in it at once lose counts, and race.
class CountingComm : public CommProgress {
 public:
  CountingComm() { attend_when_idle(3, {}); }
  ~CountingComm() { leave(); }

  // How often it had been attended to.
  uint64_t call(bool leaves_a_request_open) {
    const Call call(*this);
    ++moves_;
    open_ = leaves_a_request_open;
    return attended_;
  }
  Chore& chore() { return *this; }
  uint64_t moves() const { return moves_; }

 private:
  bool has_requests() const override { return open_; }
  bool has_work() const override { return false; }
  void advance() override {
    EXPECT_FALSE(open_);
    ++moves_;
    ++attended_;
  }

  bool open_ = false;
  uint64_t moves_ = 0, attended_ = 0;
};

TEST(CommProgress, AnIdleCommIsAttendedTo) {
  CountingComm comm;
  comm.call(false);
  EXPECT_EQ(comm.chore().attend(1'000'000), 101'000'000u);
  const uint64_t attended = comm.call(true);
  EXPECT_GE(attended, 3u) << "three turns look at all rails";
  comm.chore().attend(0);
  EXPECT_EQ(comm.call(true), attended) << "with a request open it is its caller's";
}

TEST(CommProgress, NobodyMovesACommBesideItsCaller) {
  CountingComm comm;
  std::atomic<bool> stop = false;
  std::thread other([&] {
    while (!stop) (void)comm.chore().attend(0);
  });
  uint64_t calls = 0, attended = 0;
  while (calls < 10'000 || attended < 10'000) attended = comm.call(++calls % 3 == 0);
  stop = true;
  other.join();
  attended = comm.call(true);
  EXPECT_EQ(comm.moves(), calls + 1 + attended);
}

}  // namespace
}  // namespace slime::test
