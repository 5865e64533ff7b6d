// A switch in P4 on a thread of its own: who waits for a device that does not answer, and what
// becomes of calls that it answers later.
#include "switch/p4driver/device_thread.h"

#include <gmock/gmock.h>

#include "switch/bmv2/program.h"
#include "test/p4/fake_bmv2.h"

namespace slime::p4 {
namespace {

using std::chrono::steady_clock;
using testing::HasSubstr;

class OnAThread : public testing::Test {
 protected:
  void SetUp() override {
    net::P4Options options;
    options.runtime = fake_.address();
    options.address = *SocketAddress::parse("10.0.0.254:28880");
    options.call_ms = 60'000;  // the machine may be busy, and a call that hangs is answered later
    options.mac = 0x020000000001;
    options.hosts[0x0a000001] = {0x020000000101, 1};
    auto opened = net::open_bmv2(options);
    ASSERT_TRUE(opened) << opened.error().what;
    device_ = std::make_unique<net::DeviceThread>(std::move(*opened));
    ASSERT_TRUE(until([&] { return device_->add_job(job(7)).has_value(); }));
  }
  static net::JobSpec job(uint16_t number) {
    net::JobSpec spec;
    spec.job = number;
    spec.token = 1;
    spec.slots = 4;
    spec.max_lanes = 64;
    spec.children = {*SocketAddress::parse("10.0.0.1:4000")};
    return spec;
  }
  static bool until(const std::function<bool()>& done) {
    const auto late = steady_clock::now() + std::chrono::seconds(60);
    while (!done()) {
      if (steady_clock::now() > late) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return true;
  }
  void hang(bool on) {
    fake_.change([&](FakeState& state) { state.hang = on; });
  }
  size_t jobs_there() const { return fake_.state().tables["jobs"].size(); }

  FakeBmv2 fake_;
  std::unique_ptr<net::DeviceThread> device_;
};

// However many calls are made, the caller waits for kPatience and a fifth of the time that passes.
TEST_F(OnAThread, DoesNotMakeTheCallerWait) {
  hang(true);
  const auto begin = steady_clock::now();
  const auto added = device_->add_job(job(8));
  ASSERT_FALSE(added);
  EXPECT_THAT(added.error().what, HasSubstr("has not done it in"));
  for (int i = 0; i < 1000; ++i) {
    const auto fenced = device_->fence(7, 4, 1);
    ASSERT_FALSE(fenced);
    EXPECT_THAT(fenced.error().what, HasSubstr("still busy"));
    EXPECT_FALSE(device_->totals(7));
    EXPECT_FALSE(device_->counters().empty()) << "those of the last time";
  }
  EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(30));
  hang(false);
}

// A report asks for the counters of each job. A device that is never late, but slow, must not hold
// the caller for all of them: it is asked as often as kPatience and the time that passes allow.
TEST_F(OnAThread, LeavesASlowDeviceAfterAFewCallsInARow) {
  size_t of_one = SIZE_MAX;  // the fewest, because repeated and the thread's own calls count too
  for (int i = 0; i < 5; ++i) {
    const size_t before = fake_.state().calls.size();
    ASSERT_TRUE(until([&] { return device_->totals(7).has_value(); }));
    of_one = std::min(of_one, fake_.state().calls.size() - before);
  }
  fake_.change([](FakeState& state) { state.delay_ms = 10; });
  const auto least = of_one * std::chrono::milliseconds(10);  // that one takes
  ASSERT_GT(64 * least, 5 * net::DeviceThread::kPatience) << "or it is not slow";
  const auto begin = steady_clock::now();
  int answered = 0;
  for (int i = 0; i < 64; ++i) answered += device_->totals(7).has_value();
  const auto passed = steady_clock::now() - begin;
  EXPECT_LE(answered * least, net::DeviceThread::kPatience + passed / 5 + least);
  EXPECT_TRUE(until([&] { return device_->fence(7, 2, 3).has_value(); })) << "it has its least";
}

TEST_F(OnAThread, TakesBackAJobThatIsAddedLate) {
  const auto calls = [&](const char* name) {
    return std::ranges::count(fake_.state().calls, name);
  };
  const auto added = calls("add jobs"), removed = calls("remove jobs");
  hang(true);
  ASSERT_FALSE(device_->add_job(job(8)));
  hang(false);
  const auto was_added = [&] {
    return calls("add jobs") == added + 1 && calls("remove jobs") == removed + 1;
  };
  EXPECT_TRUE(until(was_added));
  EXPECT_EQ(jobs_there(), 1u);
  EXPECT_TRUE(until([&] { return device_->add_job(job(8)).has_value(); }));
  EXPECT_EQ(jobs_there(), 2u);
}

// The device has another generation then than the controller, so the job ends.
TEST_F(OnAThread, RemovesAJobThatIsFencedLate) {
  hang(true);
  ASSERT_FALSE(device_->fence(7, 4, 2));
  hang(false);
  EXPECT_TRUE(until([&] { return jobs_there() == 0; }));
  EXPECT_TRUE(until([&] { return device_->remove_job(7).has_value(); }));
}

// As the controller does, which repeats the call until it succeeds.
TEST_F(OnAThread, RemembersAJobThatIsRemovedLate) {
  hang(true);
  ASSERT_FALSE(device_->remove_job(7));
  hang(false);
  EXPECT_TRUE(until([&] { return device_->remove_job(7).has_value(); }));
  EXPECT_EQ(jobs_there(), 0u);
  EXPECT_FALSE(device_->remove_job(7)) << "once";
}

// The call that is under way ends by its own deadline; those that would follow are not begun.
TEST_F(OnAThread, RefusesAtOnceWhileTheDeviceIsLost) {
  fake_.change([](FakeState& state) { state.broken = true; });
  EXPECT_TRUE(until([&] {
    const auto added = device_->add_job(job(8));
    return !added && added.error().what.find("is lost") != std::string::npos;
  }));
  fake_.change([](FakeState& state) { state.broken = false; });
  EXPECT_TRUE(until([&] { return device_->add_job(job(8)).has_value(); }));
  EXPECT_TRUE(until([&] { return device_->counters().back().value == 1u; })) << "restarts";
}

}  // namespace
}  // namespace slime::p4
