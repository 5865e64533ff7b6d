// The poller of a tcp rail, and threads that sleep on it.
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "test/unit/tcp/support.h"
#include "transports/sleeper.h"

namespace slime::tcp {
namespace {

constexpr uint64_t kLongNs = 60'000'000'000;
constexpr uint64_t kShortNs = 2'000'000;

std::unique_ptr<Poller> poller_of(TcpRail& rail) {
  auto poller = rail.open_poller();
  EXPECT_TRUE(poller) << poller.error().what;
  return poller ? std::move(*poller) : nullptr;
}

std::unique_ptr<Sleeper> open_sleeper() {
  auto sleeper = Sleeper::open();
  EXPECT_TRUE(sleeper) << sleeper.error().what;
  return sleeper ? std::move(*sleeper) : nullptr;
}

// Raises the limit of descriptors while it lives, as far as it can.
class MoreDescriptors {
 public:
  explicit MoreDescriptors(rlim_t wanted) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    limit_ = {std::clamp(wanted, before_.rlim_cur, before_.rlim_max), before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit_), 0);
  }
  ~MoreDescriptors() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }
  rlim_t limit() const { return limit_.rlim_cur; }

 private:
  rlimit before_ = {}, limit_ = {};
};

// Connected channels between two rails, each end on its rail's poller, with its place as its tag.
struct Crowd {
  explicit Crowd(size_t count, const Settings& settings = {}, bool confirm = false)
      : confirm_delivery(confirm),
        left_rail(loopback_rail(settings)),
        right_rail(loopback_rail(settings)),
        left_poller(poller_of(*left_rail)),
        right_poller(poller_of(*right_rail)) {
    for (uint64_t tag = 0; tag < count; ++tag) connect(tag);
  }

  void connect(uint64_t tag) {
    auto active = left_rail->open_channel({.active = true,
                                           .confirm_delivery = confirm_delivery,
                                           .poller = left_poller.get(),
                                           .tag = tag});
    auto passive = right_rail->open_channel(
        {.confirm_delivery = confirm_delivery, .poller = right_poller.get(), .tag = tag});
    ASSERT_TRUE(active && passive);
    ASSERT_TRUE(eventually([&] {
      const Status one = (*active)->connect((*passive)->address());
      return (*passive)->connect((*active)->address()) == Status::kOk && one == Status::kOk;
    }));
    left.push_back(std::move(*active));
    right.push_back(std::move(*passive));
  }

  const bool confirm_delivery;
  std::unique_ptr<TcpRail> left_rail, right_rail;
  std::unique_ptr<Poller> left_poller, right_poller;
  std::vector<std::unique_ptr<Channel>> left, right;
};

size_t count_names(Poller& poller) {
  std::array<uint64_t, 64> tags;
  return poller.poll(tags);
}

TEST(TcpPoller, AThousandIdleChannelsCostOneEmptyPoll) {
  const MoreDescriptors more(4096);
  if (more.limit() < 2500) GTEST_SKIP() << "only " << more.limit() << " descriptors";
  {
    Crowd crowd(1000);
    ASSERT_EQ(crowd.right.size(), 1000U);
    for (auto& channel : crowd.right) ASSERT_EQ(channel->arm(), Status::kOk);
    EXPECT_EQ(count_names(*crowd.right_poller), 0U);
    for (auto& channel : crowd.right) EXPECT_EQ(channel->counters.polls.get(), 0U);
    TestBuffer from(*crowd.left_rail, 64), to(*crowd.right_rail, 64);
    ASSERT_EQ(post_one(*crowd.left[777], work_of(from, 0, to, 0, 64)), 1U);
    std::array<uint64_t, 64> tags = {};
    size_t count = 0;
    ASSERT_TRUE(eventually([&] { return (count = crowd.right_poller->poll(tags)) > 0; }));
    EXPECT_EQ(count, 1U);
    EXPECT_EQ(tags[0], 777U);
  }
}

// What a poll() with little room leaves is in the channel, and the kernel knows nothing of it.
TEST(TcpPoller, IsNotArmedWhileTheChannelHasSomething) {
  Crowd crowd(1);
  TestBuffer from(*crowd.left_rail, 64), to(*crowd.right_rail, 64);
  Channel &left = *crowd.left[0], &right = *crowd.right[0];
  const std::vector<Work> works(3, work_of(from, 0, to, 0, 64));
  size_t taken = 0;
  ASSERT_EQ(left.post(works, &taken), Status::kOk);
  EXPECT_EQ(left.arm(), Status::kAgain) << "they are kSent";
  Status status = Status::kOk;
  ASSERT_TRUE(eventually([&] { return poll_once(right, &status, 1).size() == 1; }));
  EXPECT_EQ(right.arm(), Status::kAgain) << "two are staged";
  EXPECT_EQ(poll_once(right, &status).size(), 2U);
  EXPECT_TRUE(poll_once(right, &status).empty());
  EXPECT_EQ(right.arm(), Status::kOk);
}

TEST(TcpPoller, AnAcknowledgementThatWaitsGoesByTheNextPollOrAtTheEnd) {
  for (const bool closes : {false, true}) {
    Crowd crowd(1, {}, true);
    TestBuffer from(*crowd.left_rail, 64), to(*crowd.right_rail, 64);
    Channel &left = *crowd.left[0], &right = *crowd.right[0];
    ASSERT_EQ(post_one(left, work_of(from, 0, to, 0, 64)), 1U);
    Status status = Status::kOk;
    ASSERT_TRUE(eventually([&] { return poll_once(right, &status).size() == 1; }));
    EXPECT_EQ(right.counters.doorbells.get(), 0U) << "an answer may take it along";
    EXPECT_EQ(right.arm(), Status::kAgain);
    if (closes) {
      crowd.right[0] = nullptr;
    } else {
      EXPECT_TRUE(poll_once(right, &status).empty());
      EXPECT_EQ(right.counters.doorbells.get(), 1U);
    }
    EXPECT_TRUE(eventually([&] { return poll_once(left, &status).size() == 1; })) << closes;
  }
}

TEST(TcpPoller, IsNotArmedByAChannelThatHasFailed) {
  Crowd crowd(1);
  Channel& left = *crowd.left[0];
  Work bad;
  bad.length = 1;
  size_t taken = 0;
  Status status = left.post({&bad, 1}, &taken);
  ASSERT_NE(status, Status::kOk);
  EXPECT_EQ(left.arm(), Status::kAgain) << "poll() has the failure to report";
  ASSERT_TRUE(eventually([&] { return poll_once(left, &status), status != Status::kOk; }));
  EXPECT_EQ(left.arm(), status);
  crowd.right[0] = nullptr;
  EXPECT_FALSE(eventually([&] { return count_names(*crowd.left_poller) > 0; }, 100));
}

// Its socket lives on until the peer has what was sent.
TEST(TcpPoller, ForgetsAChannelThatIsClosed) {
  Crowd crowd(1);
  ASSERT_EQ(crowd.right[0]->arm(), Status::kOk);
  crowd.right[0] = nullptr;
  crowd.left[0] = nullptr;
  EXPECT_FALSE(eventually([&] { return count_names(*crowd.right_poller) > 0; }, 50));
}

// The socket's buffers are full: there is nothing to do until the peer has read.
TEST(TcpPoller, NamesAChannelThatMaySendAgain) {
  Settings settings;
  settings.socket_buffer = 64 << 10;
  Crowd crowd(1, settings);
  constexpr uint32_t kBytes = 8 << 20;
  TestBuffer from(*crowd.left_rail, kBytes), to(*crowd.right_rail, kBytes);
  Channel &left = *crowd.left[0], &right = *crowd.right[0];
  ASSERT_EQ(post_one(left, work_of(from, 0, to, 0, kBytes)), 1U);
  Status status = Status::kOk;
  ASSERT_TRUE(eventually([&] {
    EXPECT_TRUE(poll_once(left, &status).empty());
    return left.arm() == Status::kOk && count_names(*crowd.left_poller) == 0;
  }));
  bool named = false, sent = false, arrived = false;
  ASSERT_TRUE(eventually([&] {
    arrived |= !poll_once(right, &status).empty();
    while (count_names(*crowd.left_poller) > 0) {
      named = true;
      sent |= !poll_once(left, &status).empty();
      while (!sent && left.arm() == Status::kAgain) sent |= !poll_once(left, &status).empty();
    }
    return sent && arrived;
  })) << "named "
      << named << ", sent " << sent << ", arrived " << arrived;
  EXPECT_TRUE(named);
}

TEST(TcpPoller, TwoThreadsThatPollItGetEachNameOnce) {
  constexpr size_t kChannels = 8;
  constexpr uint64_t kRounds = 200;
  Crowd crowd(kChannels);
  TestBuffer from(*crowd.left_rail, 64), to(*crowd.right_rail, 64);
  std::atomic<bool> over{false};
  std::atomic<uint64_t> names{0};
  const auto collect = [&] {
    while (!over) names += count_names(*crowd.right_poller);
  };
  std::thread one(collect), other(collect);
  Status status = Status::kOk;
  for (uint64_t round = 1; round <= kRounds; ++round) {
    for (size_t i = 0; i < kChannels; ++i) {
      EXPECT_EQ(crowd.right[i]->arm(), Status::kOk);
      EXPECT_EQ(post_one(*crowd.left[i], work_of(from, 0, to, 0, 64)), 1U);
    }
    EXPECT_TRUE(eventually([&] { return names == round * kChannels; })) << names;
    for (size_t i = 0; i < kChannels; ++i) {
      EXPECT_EQ(poll_once(*crowd.right[i], &status).size(), 1U);
      EXPECT_EQ(poll_once(*crowd.left[i], &status).size(), 1U);
    }
  }
  over = true;
  one.join();
  other.join();
  EXPECT_EQ(names, kRounds * kChannels);
}

TEST(Sleeper, EndsAWaitWhenAChannelHasSomething) {
  Crowd crowd(3);
  const auto sleeper = open_sleeper();
  ASSERT_TRUE(sleeper->add(*crowd.right_poller));
  TestBuffer from(*crowd.left_rail, 64), to(*crowd.right_rail, 64);
  for (auto& channel : crowd.right) ASSERT_EQ(channel->arm(), Status::kOk);
  std::thread sleeping([&] { sleeper->wait(kLongNs); });
  ASSERT_EQ(post_one(*crowd.left[2], work_of(from, 0, to, 0, 64)), 1U);
  sleeping.join();
  std::array<uint64_t, 64> tags = {};
  EXPECT_EQ(crowd.right_poller->poll(tags), 1U);
  EXPECT_EQ(tags[0], 2U);
}

// A poller that has a name to give, and a descriptor that does not tell of it.
TEST(Sleeper, DoesNotSleepWhileAPollerHasSomething) {
  struct Ready final : Poller {
    using Poller::Poller;
    size_t poll(std::span<uint64_t>) override { return 1; }
    bool prepare_to_sleep() override { return false; }
    int descriptor() const override { return fd.get(); }
    Fd fd{::eventfd(0, EFD_CLOEXEC)};
  };
  const auto rail = loopback_rail();
  Ready poller(*rail);
  const auto sleeper = open_sleeper();
  ASSERT_TRUE(sleeper->add(poller));
  sleeper->wait(kLongNs);
}

TEST(Sleeper, KnowsAWakeThatEndedAWaitNoMore) {
  const auto sleeper = open_sleeper();
  std::atomic<int> waits{0};
  std::thread sleeping([&] {
    sleeper->wait(kLongNs);
    ++waits;
    sleeper->wait(kLongNs);
    ++waits;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));  // most times it sleeps by then
  sleeper->wake();
  EXPECT_TRUE(eventually([&] { return waits == 1; }));
  EXPECT_FALSE(eventually([&] { return waits == 2; }, 20));
  sleeper->wake();
  sleeping.join();
}

TEST(Sleeper, KeepsAWakeThatComesBeforeTheWait) {
  const auto sleeper = open_sleeper();
  for (int i = 0; i < 3; ++i) sleeper->wake();
  sleeper->wait(kLongNs);
  const uint64_t begin_ns = steady_now_ns();
  sleeper->wait(kShortNs);
  EXPECT_GE(steady_now_ns() - begin_ns, kShortNs) << "the three count as one";
}

// No wake is lost, whenever it comes: each wait here lasts until one.
TEST(Sleeper, IsWokenByAnotherThreadEachTime) {
  const auto sleeper = open_sleeper();
  std::atomic<uint64_t> asked{0}, answered{0};
  constexpr uint64_t kRounds = 5000;
  std::thread sleeping([&] {
    while (answered < kRounds) {
      while (answered == asked) sleeper->wait(kLongNs);
      ++answered;
    }
  });
  for (uint64_t i = 0; i < kRounds; ++i) {
    ++asked;
    sleeper->wake();
    EXPECT_TRUE(i % 2 == 0 || eventually([&] { return answered == asked; }));
  }
  sleeping.join();
  EXPECT_EQ(answered, kRounds);
}

// Ping-pong between two threads which do nothing but sleep on the poller of their end.
TEST(Sleeper, TwoEndsThatSleepMoveEverything) {
  constexpr uint32_t kRounds = 2000;
  Crowd crowd(1);
  TestBuffer from(*crowd.left_rail, 64), to(*crowd.right_rail, 64);
  TestBuffer back(*crowd.right_rail, 64), home(*crowd.left_rail, 64);
  // Returns how many have arrived.
  const auto play = [](Poller& poller, Channel& channel, const Work& work, bool begins) {
    const auto sleeper = open_sleeper();
    EXPECT_TRUE(sleeper->add(poller));
    uint32_t arrived = 0, posted = 0;
    Status status = Status::kOk;
    while ((arrived < kRounds || posted < kRounds) && status == Status::kOk) {
      const bool turn = begins ? posted == arrived : posted < arrived;
      if (turn && posted < kRounds) posted += static_cast<uint32_t>(post_one(channel, work));
      const std::vector<Done> dones = poll_once(channel, &status);
      for (const Done& done : dones) arrived += done.kind == Done::Kind::kArrived;
      if (!dones.empty() || channel.arm() != Status::kOk) continue;
      sleeper->wait(kLongNs);
      (void)count_names(poller);
    }
    return arrived;
  };
  uint32_t at_right = 0;
  std::thread right([&] {
    at_right = play(*crowd.right_poller, *crowd.right[0], work_of(back, 0, home, 0, 64), false);
  });
  EXPECT_EQ(play(*crowd.left_poller, *crowd.left[0], work_of(from, 0, to, 0, 64), true), kRounds);
  right.join();
  EXPECT_EQ(at_right, kRounds);
}

}  // namespace
}  // namespace slime::tcp
