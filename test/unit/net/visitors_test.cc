// The rules of listening ports for those who have not proven who they are.
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <thread>

#include "base/log.h"
#include "base/net/visitors.h"
#include "test/support/strangers.h"

namespace slime {
namespace {

constexpr uint64_t kLate = VisitorPort::kGraceNs + 100;  // of visits that began in the first 100 ns

Visit visit(const char* from, uint64_t since_ns) { return {*SocketAddress::parse(from), since_ns}; }

TEST(VisitToDrop, IsTheOldest) {
  EXPECT_EQ(visit_to_drop({}, kLate), std::nullopt);
  const std::vector<Visit> visits = {visit("10.0.0.1:5", 1), visit("10.0.0.1:7", 2),
                                     visit("10.0.0.1:6", 3)};
  EXPECT_EQ(visit_to_drop(visits, kLate), 0u);
}

TEST(VisitToDrop, IsTheOldestOfTheAddressThatHasTheMost) {
  const std::vector<Visit> visits = {visit("10.0.0.1:5", 1), visit("10.0.0.2:5", 2),
                                     visit("10.0.0.3:5", 3), visit("10.0.0.2:9", 4)};
  EXPECT_EQ(visit_to_drop(visits, kLate), 1u);
}

TEST(VisitToDrop, IsTheOldestOfAllAmongEqualShares) {
  const std::vector<Visit> visits = {visit("10.0.0.1:5", 1), visit("10.0.0.2:5", 2),
                                     visit("10.0.0.2:6", 3), visit("10.0.0.1:6", 4)};
  EXPECT_EQ(visit_to_drop(visits, kLate), 0u);
}

TEST(VisitToDrop, TellsIpv6AddressesApart) {
  const std::vector<Visit> visits = {visit("[fd00::1]:5", 1), visit("[fd00::2]:5", 2),
                                     visit("[fd00::2]:6", 3)};
  EXPECT_EQ(visit_to_drop(visits, kLate), 1u);
}

TEST(VisitToDrop, IsNobodyWithinItsGrace) {
  const std::vector<Visit> visits = {visit("10.0.0.1:5", 100), visit("10.0.0.1:6", 100)};
  EXPECT_EQ(visit_to_drop(visits, 100 + VisitorPort::kGraceNs - 1), std::nullopt);
  EXPECT_EQ(visit_to_drop(visits, 100 + VisitorPort::kGraceNs), 0u);
}

// A port whose visitors never say anything.
class SilentPort final : public VisitorPort {
 public:
  std::vector<Visit> visits() const override {
    std::vector<Visit> all;
    for (const Accepted& visitor : visitors_) all.push_back({visitor.peer, since_ns_});
    return all;
  }
  void drop_visit(size_t index) override {
    visitors_.erase(visitors_.begin() + static_cast<ptrdiff_t>(index));
    ++dropped_;
  }
  Status admit(Accepted accepted, Error* /*error*/) override {
    visitors_.push_back(std::move(accepted));
    ++admitted_;
    return Status::kOk;
  }

  std::deque<Accepted> visitors_;
  uint64_t since_ns_ = 0;
  size_t dropped_ = 0, admitted_ = 0;
};

class VisitorPortTest : public testing::Test {
 protected:
  // Looks, at `now_ns`, until so many have been admitted.
  void look_until(size_t admitted, uint64_t now_ns) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (port_.admitted_ < admitted && std::chrono::steady_clock::now() < end) {
      EXPECT_EQ(port_.accept_visitors(listener_, now_ns, &error_), Status::kOk);
    }
    EXPECT_EQ(port_.admitted_, admitted);
  }

  SilentPort port_;
  Fd listener_ = *listen_on(*SocketAddress::parse("127.0.0.1"));
  const SocketAddress address_ = *local_address(listener_);
  test::Strangers strangers_;
  Error error_;
};

TEST_F(VisitorPortTest, TakesNoMoreThanThereArePlaces) {
  strangers_.come(address_, VisitorPort::kPlaces + 5);
  look_until(VisitorPort::kPlaces + 5, kLate);
  EXPECT_EQ(port_.visitors_.size(), VisitorPort::kPlaces);
  EXPECT_EQ(port_.dropped_, 5u);
}

TEST_F(VisitorPortTest, LeavesWhoHasJustComeAlone) {
  strangers_.come(address_, VisitorPort::kPlaces);
  look_until(VisitorPort::kPlaces, 0);
  strangers_.come(address_, 1);
  pollfd backlog{listener_.get(), POLLIN, 0};
  ASSERT_EQ(poll(&backlog, 1, 60'000), 1);
  EXPECT_EQ(port_.accept_visitors(listener_, 0, &error_), Status::kAgain);
  EXPECT_EQ(port_.dropped_, 0u);
  look_until(VisitorPort::kPlaces + 1, kLate);
  EXPECT_EQ(port_.dropped_, 1u);
}

TEST_F(VisitorPortTest, OneCallIsBounded) {
  constexpr size_t kBound = VisitorPort::kAcceptsPerCall;
  SLIME_NEEDS_MANY(strangers_);
  strangers_.come(address_, 2 * kBound);
  EXPECT_EQ(port_.accept_visitors(listener_, kLate, &error_), Status::kOk);
  EXPECT_LE(port_.admitted_, kBound);
  look_until(2 * kBound, kLate);
}

// Also where no visitor has a descriptor that could be freed: the owner goes on, and the log has
// one line until a connection has been accepted again.
TEST_F(VisitorPortTest, OutOfDescriptorsConnectionsWait) {
  static size_t lines;
  lines = 0;
  log::set_sink([](log::Level, const char*, int, const char*) { ++lines; });
  strangers_.come(address_, 1);
  pollfd backlog{listener_.get(), POLLIN, 0};
  ASSERT_EQ(poll(&backlog, 1, 60'000), 1);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int lowest = dup(listener_.get());  // the next descriptor that would be free
  ASSERT_EQ(close(lowest), 0);
  const rlimit tight{static_cast<rlim_t>(lowest), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
  size_t failed = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    failed += port_.accept_visitors(listener_, i * kLate, &error_) != Status::kAgain;
  }
  const std::string trouble = port_.trouble();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(failed, 0u);
  EXPECT_EQ(lines, 1u);
  EXPECT_NE(trouble.find("out of descriptors"), std::string::npos) << trouble;
  look_until(1, kLate);
  EXPECT_EQ(port_.trouble(), "");
  log::set_sink(nullptr);
}

TEST(StrangerLog, HasOneLineASecond) {
  constexpr uint64_t kSecond = 1'000'000'000;
  StrangerLog strangers;
  EXPECT_EQ(strangers.summary(), "");
  EXPECT_EQ(strangers.turned_away(5), "");
  EXPECT_EQ(strangers.summary(), "; 1 stranger was turned away meanwhile");
  EXPECT_EQ(strangers.turned_away(6), std::nullopt);
  EXPECT_EQ(strangers.turned_away(5 + kSecond - 1), std::nullopt);
  EXPECT_EQ(strangers.turned_away(5 + kSecond), "; 2 more were turned away without a line");
  EXPECT_EQ(strangers.turned_away(5 + 2 * kSecond), "");
  EXPECT_EQ(strangers.count(), 5u);
  EXPECT_EQ(strangers.summary(), "; 5 strangers were turned away meanwhile");
}

}  // namespace
}  // namespace slime
