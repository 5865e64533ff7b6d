// A port that wants a hello of four bytes, and says an opening first where it has one.
#include "base/net/hello_port.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/deadline.h"
#include "base/net/dialer.h"
#include "test/support/manual_clock.h"
#include "test/support/unused_address.h"

namespace slime {
namespace {

using std::chrono::steady_clock;

constexpr uint64_t kLimitNs = 1'000'000'000;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

class FourBytes final : public HelloPort {
 public:
  explicit FourBytes(std::string opening) : HelloPort(4, kLimitNs), opening_(std::move(opening)) {}

  using HelloPort::read_callers;

  std::vector<std::string> accepted_;
  std::vector<Fd> connections_;
  mutable std::vector<std::string> lines_;

 private:
  Result<std::vector<std::byte>> open() override {
    const auto bytes = bytes_of(opening_);
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  }
  const char* refuse_begun(std::span<const std::byte> said) const override {
    return !said.empty() && said[0] != std::byte{'h'} ? "it begins wrongly" : nullptr;
  }
  std::optional<std::string> accept(Caller& caller) override {
    const std::string said(reinterpret_cast<const char*>(caller.hello.data()), caller.hello.size());
    if (said != "helo") return "its hello is wrong";
    accepted_.push_back(said);
    connections_.push_back(std::move(caller.fd));
    return std::nullopt;
  }
  void log_stranger(const Caller& caller, const std::string& why,
                    const std::string& more) const override {
    lines_.push_back(std::to_string(caller.received) + " bytes, " + why + more);
  }

  const std::string opening_;
};

class HelloPortTest : public testing::TestWithParam<std::string> {
 protected:
  // Looks until `done`, for a minute at most.
  template <typename Done>
  bool look_until(Done done) {
    const auto end = steady_clock::now() + std::chrono::seconds(60);
    while (steady_clock::now() < end) {
      EXPECT_EQ(port_.read_callers(listener_, clock_, &error_), Status::kOk) << error_.what;
      if (done()) return true;
    }
    return false;
  }
  Fd dial() {
    Dialer dialer(address_, {});
    Error error;
    Status status;
    while ((status = dialer.progress(0, &error)) == Status::kAgain) std::this_thread::yield();
    EXPECT_EQ(status, Status::kOk) << error.what;
    return std::move(dialer.fd());
  }
  void say(const Fd& fd, std::string_view text) {
    size_t done = 0;
    EXPECT_EQ(send_message(fd, bytes_of(text), &done, &error_), Status::kOk) << error_.what;
  }

  FourBytes port_{GetParam()};
  const Fd listener_ = *listen_on(*SocketAddress::parse("127.0.0.1"));
  const SocketAddress address_ = *local_address(listener_);
  test::ManualClock clock_;
  Error error_;
};

TEST_P(HelloPortTest, HandsOverWhoSaysHello) {
  const Fd caller = dial();
  say(caller, "he");
  say(caller, "lo");
  EXPECT_TRUE(look_until([&] { return !port_.accepted_.empty(); }));
  EXPECT_EQ(port_.strangers().count(), 0u);
  const SocketAddress theirs = *peer_address(port_.connections_[0]);
  EXPECT_EQ(theirs, *local_address(caller));
}

TEST_P(HelloPortTest, TellsTheOpeningFirst) {
  const Fd caller = dial();
  std::string heard(GetParam().size(), '?');
  size_t done = 0;
  EXPECT_TRUE(look_until([&] {
    return receive_message(caller, std::as_writable_bytes(std::span(heard)), &done, &error_) ==
           Status::kOk;
  }));
  EXPECT_EQ(heard, GetParam());
}

TEST_P(HelloPortTest, TurnsAwayAWrongHello) {
  const Fd caller = dial();
  say(caller, "halo");
  EXPECT_TRUE(look_until([&] { return port_.strangers().count() == 1; }));
  EXPECT_EQ(port_.lines_, std::vector<std::string>{"4 bytes, its hello is wrong"});
}

TEST_P(HelloPortTest, DoesNotWaitForTheRestOfAWrongBeginning) {
  const Fd caller = dial();
  say(caller, "x");
  EXPECT_TRUE(look_until([&] { return port_.strangers().count() == 1; }));
  EXPECT_EQ(port_.lines_, std::vector<std::string>{"1 bytes, it begins wrongly"});
}

TEST_P(HelloPortTest, DoesNotJudgeAWholeHelloThatBeginsWrongly) {
  const Fd caller = dial();
  say(caller, "xelo");
  EXPECT_TRUE(look_until([&] { return port_.strangers().count() == 1; }));
  EXPECT_EQ(port_.lines_, std::vector<std::string>{"4 bytes, it begins wrongly"});
}

TEST_P(HelloPortTest, TurnsAwayWhoIsLate) {
  const Fd caller = dial();
  say(caller, "he");
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(port_.read_callers(listener_, clock_, &error_), Status::kOk);
  EXPECT_EQ(port_.strangers().count(), 0u);
  EXPECT_TRUE(look_until([&] {
    clock_.pass(kLimitNs);  // accepted at the latest in the look before
    return port_.strangers().count() == 1;
  }));
  EXPECT_NE(port_.lines_.at(0).find("no whole hello in time"), std::string::npos);
}

// After a pause the port reads its sockets before it judges by the time.
TEST_P(HelloPortTest, AcceptsAfterAPauseWhatCameInTime) {
  const Fd caller = dial();
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(port_.read_callers(listener_, clock_, &error_), Status::kOk);
  say(caller, "helo");
  clock_.pass(10 * kLimitNs);
  EXPECT_TRUE(look_until([&] { return !port_.accepted_.empty(); }));
  EXPECT_EQ(port_.strangers().count(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Openings, HelloPortTest, testing::Values("", "who are you?"),
                         [](const auto& info) { return info.param.empty() ? "None" : "Asks"; });

TEST(Deadline, IsMissedOnlyByALookThatBeganAfterIt) {
  test::ManualClock clock;
  Deadline deadline(clock, 100);
  const Deadline::Look early(deadline);
  clock.pass(100);
  EXPECT_TRUE(deadline.passed());
  EXPECT_FALSE(early.expired()) << "the process may have been stopped: look again";
  const Deadline::Look late(deadline);
  EXPECT_TRUE(late.expired());
  deadline.restart(100);
  EXPECT_FALSE(late.expired()) << "the look has achieved something";
}

TEST(Deadline, DoesNotWrapAround) {
  test::ManualClock clock;
  clock.pass(5);
  EXPECT_FALSE(Deadline(clock, UINT64_MAX).passed());
}

}  // namespace
}  // namespace slime
