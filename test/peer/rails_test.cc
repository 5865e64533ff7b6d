// What a program learns of the rails that its requests took.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "test/peer/test_engine.h"
#include "test/support/own_sockets.h"

namespace slime {
namespace {

constexpr const char* kTwoRails = "ifname=lo; rails_per_if=2";
constexpr size_t kBytes = 64 << 20;

class RailsTest : public testing::Test {
 protected:
  slime_assignment all() const { return {local_, remote_, 0, 0, kBytes}; }
  static uint64_t given(const slime_result& result) {
    return std::accumulate(result.rail_bytes, result.rail_bytes + SLIME_RAILS, uint64_t{0});
  }

  std::vector<char> mine_ = std::vector<char>(kBytes, 'm'),
                    theirs_ = std::vector<char>(kBytes, 't');
  TestEngine here_{kTwoRails}, there_{kTwoRails};
  slime_region local_ = here_.add(mine_);
  slime_peer peer_ = here_.know(there_);
  slime_remote remote_ = here_.remote(peer_, there_.blob_of(there_.add(theirs_)));
};

TEST_F(RailsTest, ResultsSayWhichRailMovedWhat) {
  bool by_both = false;
  for (int i = 0; i < 20 && !by_both; ++i) {
    const slime_result result = here_.run(peer_, SLIME_WRITE, all());
    EXPECT_EQ(result.status, SLIME_OK) << result.text;
    EXPECT_GE(given(result), kBytes);
    EXPECT_TRUE(result.retries > 0 || given(result) == kBytes);
    by_both = result.rail_bytes[0] > 0 && result.rail_bytes[1] > 0;
  }
  EXPECT_TRUE(by_both);
  for (int ms = 0; here_.info(peer_).rails_up < 2 && ms < 60'000; ++ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // one that was silent returns
  }
  const slime_peer_info info = here_.info(peer_);
  EXPECT_EQ(info.rails, 2u);
  EXPECT_STREQ(info.rail_text, "0: lo.0 (tcp), up\n1: lo.1 (tcp), up\n");
}

TEST_F(RailsTest, RoundTripsAreThoseOfSmallRequests) {
  ASSERT_EQ(here_.run(peer_, SLIME_WRITE, all()).status, SLIME_OK);
  EXPECT_EQ(here_.info(peer_).round_trip_ns, 0u);
  const uint64_t begin_ns = steady_now_ns();
  ASSERT_EQ(here_.run(peer_, SLIME_READ, {local_, remote_, 0, 0, 8}).status, SLIME_OK);
  const uint64_t round_trip_ns = here_.info(peer_).round_trip_ns;
  EXPECT_GT(round_trip_ns, 0u);
  EXPECT_LE(round_trip_ns, steady_now_ns() - begin_ns);
}

uint64_t bytes_sent(int socket) {
  tcp_info info = {};
  socklen_t bytes = sizeof info;
  (void)::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &bytes);
  return info.tcpi_bytes_acked;
}

// A connection that carries much is ended under the request.
TEST_F(RailsTest, ResultsCountWhatWasMovedAgain) {
  ASSERT_EQ(here_.run(peer_, SLIME_WRITE, all()).status, SLIME_OK);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  uint64_t retries = 0;
  while (retries == 0 && std::chrono::steady_clock::now() < end) {
    std::ranges::fill(theirs_, 't');
    const slime_request request = here_.begin(peer_, SLIME_WRITE, all());
    const auto sockets = test::own_sockets();
    const auto busiest = std::ranges::max_element(sockets, {}, bytes_sent);
    ASSERT_NE(busiest, sockets.end());
    ::shutdown(*busiest, SHUT_RDWR);
    const slime_result result = here_.end(request);
    ASSERT_EQ(result.status, SLIME_OK) << result.text;
    EXPECT_EQ(result.bytes, kBytes);
    EXPECT_GE(given(result), kBytes);
    EXPECT_TRUE(theirs_ == mine_);
    retries = result.retries;
  }
  EXPECT_GT(retries, 0u);
}

}  // namespace
}  // namespace slime
