// The rails of a link over real sockets: they die, return, and lose their carrier.
#include <chrono>
#include <cstring>

#include "test/engine/tcp_transfer.h"
#include "test/support/kept_warnings.h"

namespace slime::test {
namespace {

TEST(TcpLink, SurvivesTheDeathOfAllRailsButOne) {
  TcpHost from(rails(4)), to(rails(4));
  TcpLink link;
  ASSERT_NO_FATAL_FAILURE(link.connect(from, to));
  Buffers buffers(from, to, 3 << 20);
  ASSERT_NO_FATAL_FAILURE(expect_transfer(link, buffers, 3 << 20));
  for (int dead = 0; dead < 3; ++dead) {
    MortalRail* victim = (dead % 2 ? to : from).rails[static_cast<size_t>(dead)];
    int steps = 0;
    ASSERT_NO_FATAL_FAILURE(expect_transfer(link, buffers, 3 << 20,
                                            [&] {
                                              victim->dead =
                                                  victim->dead ||
                                                  ++steps == 5;  // in the middle of the message
                                            }))
        << "rail " << dead;
  }
  ASSERT_NO_FATAL_FAILURE(expect_transfer(link, buffers, 1000));
}

// A receiver that has its message is not called any more. The rail dies with the acknowledgement of
// a stripe, so that only this receiver can say what had arrived.
TEST(TcpLink, AnIdleReceiverTellsWhatHadArrivedOverADeadRail) {
  TcpHost from(rails(2)), to(rails(2), SteadyClock::instance(), true);
  TcpLink link;
  ASSERT_NO_FATAL_FAILURE(link.connect(from, to));
  constexpr size_t kBytes = 64 << 10;
  Buffers buffers(from, to, kBytes);
  const Receive wanted{buffers.target.data(), kBytes, 0, buffers.target_region};
  Request *send = nullptr, *receive = nullptr;
  bool sent = false, received = false;
  ASSERT_TRUE(in_time([&] {
    if (receive == nullptr) (void)link.receiver->irecv({&wanted, 1}, false, &receive);
    EXPECT_EQ(link.receiver->progress(), Status::kOk);
    EXPECT_EQ(link.sender->isend(buffers.source.data(), kBytes, 0, buffers.source_region, &send),
              Status::kOk);
    return send != nullptr;
  }));
  ASSERT_EQ(link.sender->test(send, &sent, nullptr), Status::kOk);
  ASSERT_FALSE(sent) << "the receiver has not looked yet";
  ASSERT_TRUE(in_time([&] {
    EXPECT_EQ(link.receiver->test(receive, &received, nullptr), Status::kOk);
    return received || ::testing::Test::HasFailure();
  }));
  const LinkRails& sending = as_impl(*link.sender).link().rails();
  from.rails[sending[0].queue.outstanding_bytes() >= kBytes ? 0 : 1]->dead = true;
  ASSERT_TRUE(in_time([&] {
    EXPECT_EQ(link.sender->test(send, &sent, nullptr), Status::kOk);
    return sent || ::testing::Test::HasFailure();
  })) << "the sender waits for ever";
}

// A small message is done when its rail has taken it. Its sender then closes while one of the rails
// is dead, which may be that one.
TEST(TcpLink, ASmallMessageOutlivesItsRailAndItsSender) {
  for (const size_t victim : {0, 1}) {
    TcpHost from(rails(2), SteadyClock::instance(), true),
        to(rails(2), SteadyClock::instance(), true);
    TcpLink link;
    ASSERT_NO_FATAL_FAILURE(link.connect(from, to));
    constexpr size_t kBytes = 100;
    Buffers buffers(from, to, kBytes);
    Request *send = nullptr, *receive = nullptr;
    bool sent = false, received = false;
    ASSERT_TRUE(in_time([&] {
      const Status status =
          send ? link.sender->test(send, &sent, nullptr)
               : link.sender->isend(buffers.source.data(), kBytes, 0, buffers.source_region, &send);
      EXPECT_EQ(status, Status::kOk);
      return sent || ::testing::Test::HasFailure();
    }));
    from.rails[victim]->dead = true;
    link.sender.reset();
    const Receive wanted{buffers.target.data(), kBytes, 0, buffers.target_region};
    ASSERT_TRUE(in_time([&] {
      const Status status = receive ? link.receiver->test(receive, &received, nullptr)
                                    : link.receiver->irecv({&wanted, 1}, false, &receive);
      EXPECT_EQ(status, Status::kOk) << link.receiver->failure().what;
      return received || ::testing::Test::HasFailure();
    }));
    EXPECT_EQ(std::memcmp(buffers.target.data(), buffers.source.data(), kBytes), 0);
  }
}

bool all_up(TcpLink& link, size_t count) {
  return as_impl(*link.sender).link().rails().up_count() == count &&
         as_impl(*link.receiver).link().rails().up_count() == count;
}

// Both ends are driven until each has so many rails up.
void await_rails(TcpLink& link, size_t count) {
  ASSERT_TRUE(in_time([&] {
    EXPECT_EQ(link.sender->progress(), Status::kOk) << link.sender->failure().what;
    EXPECT_EQ(link.receiver->progress(), Status::kOk) << link.receiver->failure().what;
    return all_up(link, count) || ::testing::Test::HasFailure();
  }));
}

TEST(TcpLink, ADeadRailReturnsAndCarriesTraffic) {
  Settings settings = rails(2);
  settings.rail_retry = 0.01;
  TcpHost from(settings), to(settings);
  TcpLink link;
  ASSERT_NO_FATAL_FAILURE(link.connect(from, to));
  Buffers buffers(from, to, 3 << 20);
  for (int life = 1; life <= 6; ++life) {
    MortalRail* victim = (life % 2 ? to : from).rails[static_cast<size_t>(life % 2)];
    victim->dead = true;
    ASSERT_NO_FATAL_FAILURE(await_rails(link, 1));
    ASSERT_NO_FATAL_FAILURE(expect_transfer(link, buffers, 1 << 20));
    victim->dead = false;
    ASSERT_NO_FATAL_FAILURE(await_rails(link, 2));
    EXPECT_GE(as_impl(*link.sender).link().rejoins(), static_cast<uint64_t>(life));
    ASSERT_NO_FATAL_FAILURE(expect_transfer(link, buffers, 3 << 20));
  }
}

// One end has a port without a carrier. It says so, and the pause before a try is over as soon as
// the port has its carrier back: at the end that begins tries, and at the other, which tells it.
TEST(TcpLink, ARailWithoutACarrierIsLeftAndTakenBackAtOnce) {
  for (const bool active : {true, false}) {
    SCOPED_TRACE(active);
    Settings settings = rails(2);
    settings.rail_retry = 3600;
    TcpHost from(settings), to(settings);
    TcpLink link;
    ASSERT_NO_FATAL_FAILURE(link.connect(from, to));
    Buffers buffers(from, to, 3 << 20);
    MortalRail* rail = (active ? from : to).rails[1];
    rail->port = Carrier::kDown;
    ASSERT_NO_FATAL_FAILURE(await_rails(link, 1));
    ASSERT_NO_FATAL_FAILURE(expect_transfer(link, buffers, 1 << 20));
    rail->port = Carrier::kUp;
    ASSERT_NO_FATAL_FAILURE(await_rails(link, 2));
    ASSERT_NO_FATAL_FAILURE(expect_transfer(link, buffers, 3 << 20));
  }
}

// Ranks end one after the other, and their rails too: that is no death of a rail.
TEST(TcpLink, NoRailIsReportedDownWhereThePeerHasClosed) {
  const KeptWarnings down(" is down");
  for (const bool sender_closes : {true, false}) {
    TcpHost from(rails(3)), to(rails(3));
    TcpLink link;
    ASSERT_NO_FATAL_FAILURE(link.connect(from, to));
    if (sender_closes) {
      link.sender.reset();
    } else {
      link.receiver.reset();
    }
    Comm& other = sender_closes ? static_cast<Comm&>(*link.receiver) : *link.sender;
    EXPECT_TRUE(in_time([&] { return other.progress() == Status::kRemote; }));
  }
  EXPECT_EQ(down.lines(), std::vector<std::string>());
}

TEST(TcpLink, NoRailIsLeftWhereNoneHasACarrier) {
  const KeptWarnings warnings("no rail has a carrier");
  TcpHost from(rails(2)), to(rails(2));
  TcpLink link;
  ASSERT_NO_FATAL_FAILURE(link.connect(from, to));
  Buffers buffers(from, to, 3 << 20);
  for (MortalRail* rail : from.rails) rail->port = Carrier::kDown;
  ASSERT_TRUE(in_time([&] {
    expect_transfer(link, buffers, 1 << 20);
    return !warnings.lines().empty() || ::testing::Test::HasFailure();
  }));
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  while (std::chrono::steady_clock::now() < end) {
    ASSERT_NO_FATAL_FAILURE(expect_transfer(link, buffers, 1 << 20));
  }
  EXPECT_TRUE(all_up(link, 2));
  EXPECT_EQ(warnings.lines().size(), 1u) << "said again and again";
}

TEST(TcpLink, TheErrorNamesAPortWithoutACarrier) {
  TcpHost from(rails(1)), to(rails(1));
  TcpLink link;
  ASSERT_NO_FATAL_FAILURE(link.connect(from, to));
  Buffers buffers(from, to, 4096);
  to.rails[0]->port = Carrier::kDown;
  to.rails[0]->dead = true;
  EXPECT_EQ(transfer(link, buffers, 4096).received, Status::kRemote);
  const std::string& why = link.receiver->failure().what;
  EXPECT_NE(why.find("lo has no carrier"), std::string::npos) << why;
  EXPECT_EQ(link.sender->failure().what.find("carrier"), std::string::npos);
}

TEST(TcpLink, FailsAtBothEndsWithItsLastRail) {
  TcpHost from(rails(2)), to(rails(2));
  TcpLink link;
  ASSERT_NO_FATAL_FAILURE(link.connect(from, to));
  Buffers buffers(from, to, 3 << 20);
  for (MortalRail* rail : from.rails) rail->dead = true;
  const Outcome outcome = transfer(link, buffers, 3 << 20);
  EXPECT_EQ(outcome.sent, Status::kRemote);
  EXPECT_EQ(outcome.received, Status::kRemote);
  EXPECT_NE(link.receiver->failure().what.find("last rail"), std::string::npos);
  EXPECT_NE(link.receiver->failure().what.find(link.receiver->peer_name()), std::string::npos);
}

}  // namespace
}  // namespace slime::test
