#include "test/support/own_sockets.h"
#include "test/unit/net/socket_pair.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>

#include "base/net/socket.h"
#include "test/support/unused_address.h"

namespace slime {
namespace {

using test::loopback;
using test::SocketPair;
using test::wait_for;
using testing::HasSubstr;

TEST(Socket, EverySocketIsNonBlockingAndClosedOnExec) {
  const SocketPair pair;
  for (const Fd* fd : {&pair.listener, &pair.active, &pair.passive.fd}) {
    EXPECT_TRUE(fcntl(fd->get(), F_GETFL) & O_NONBLOCK);
    EXPECT_TRUE(fcntl(fd->get(), F_GETFD) & FD_CLOEXEC);
  }
}

TEST(Socket, BothEndsAgreeOnTheAddresses) {
  const SocketAddress source = loopback("127.0.0.5");
  const SocketPair pair("127.0.0.1", &source);
  EXPECT_EQ(local_address(pair.active)->host(), "127.0.0.5");
  EXPECT_NE(local_address(pair.active)->port(), 0);
  EXPECT_EQ(pair.passive.peer, *local_address(pair.active));
  EXPECT_EQ(*peer_address(pair.active), *local_address(pair.passive.fd));
}

TEST(Socket, Ipv6) {
  if (!listen_on(loopback("::1"))) GTEST_SKIP() << "no IPv6 on this machine";
  const SocketPair pair("::1");
  EXPECT_EQ(pair.passive.peer, *local_address(pair.active));
  EXPECT_EQ(pair.passive.peer.host(), "::1");
}

TEST(Socket, AcceptWithoutAConnectionIsAgain) {
  const Fd listener = listen_on(loopback()).value();
  Accepted accepted;
  Error error;
  EXPECT_EQ(accept_one(listener, &accepted, &error), Status::kAgain);
  EXPECT_FALSE(accepted.fd);
}

TEST(Socket, RefusedConnectionNamesThePeer) {
  const SocketAddress there = SocketAddress::parse(test::unused_address()).value();
  Error error;
  auto fd = start_connect(there);
  if (fd) {
    EXPECT_EQ(wait_for([&] { return finish_connect(*fd, there, &error); }), Status::kRemote);
  } else {
    error = fd.error();
  }
  EXPECT_EQ(error.status, Status::kRemote);
  EXPECT_EQ(error.code, ECONNREFUSED);
  EXPECT_THAT(error.what, HasSubstr("connect to " + there.to_string() + ": Connection refused"));
}

TEST(Socket, ConnectingToItselfIsARefusal) {
  // A client bound to the port that it connects to meets itself, as an unlucky choice of the
  // ephemeral port does.
  SocketAddress self;
  Fd fd;
  ASSERT_EQ(wait_for([&] {  // until nobody else got the port in between
              self = *local_address(listen_on(loopback()).value());
              auto started = start_connect(self, {.source = &self});
              if (!started)
                return started.error().code == EADDRINUSE ? Status::kAgain : Status::kSystem;
              fd = std::move(*started);
              return Status::kOk;
            }),
            Status::kOk);
  Error error;
  EXPECT_EQ(wait_for([&] { return finish_connect(fd, self, &error); }), Status::kRemote);
  EXPECT_EQ(error.code, ECONNREFUSED);
}

TEST(Socket, FinishConnectOnWhatIsNotConnecting) {
  Error error;
  const Fd unconnected(socket(AF_INET, SOCK_STREAM, 0));
  EXPECT_EQ(finish_connect(unconnected, loopback(), &error), Status::kSystem);
  EXPECT_EQ(error.code, ENOTCONN);
  EXPECT_EQ(finish_connect(Fd(1 << 28), loopback(), &error), Status::kSystem);
  EXPECT_EQ(error.code, EBADF);
}

TEST(Socket, ListenOnATakenPortSaysSo) {
  const Fd first = listen_on(loopback()).value();
  const SocketAddress taken = *local_address(first);
  const auto second = listen_on(taken);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, EADDRINUSE);
  EXPECT_THAT(second.error().what, HasSubstr("bind to " + taken.to_string()));
  EXPECT_THAT(second.error().what, HasSubstr("choose another port"));
}

TEST(Socket, SourceThatIsNotOurs) {
  const Fd listener = listen_on(loopback()).value();
  const SocketAddress foreign = loopback("192.0.2.1");  // RFC 5737: never assigned
  const auto fd = start_connect(*local_address(listener), {.source = &foreign});
  ASSERT_FALSE(fd);
  EXPECT_EQ(fd.error().code, EADDRNOTAVAIL);
  EXPECT_THAT(fd.error().what, HasSubstr("192.0.2.1"));
}

class OutOfDescriptors : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0); }
  void TearDown() override { ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }
  // From here on no descriptor is free.
  void exhaust() {
    const Fd lowest(dup(0));
    rlimit now = before_;
    now.rlim_cur = static_cast<rlim_t>(lowest.get());
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &now), 0);
  }
  rlimit before_{};
};

TEST_F(OutOfDescriptors, AcceptSaysWhatToRaiseAndTheConnectionWaits) {
  const Fd listener = listen_on(loopback()).value();
  const SocketAddress there = *local_address(listener);
  const Fd active = start_connect(there).value();
  Error error;
  ASSERT_EQ(wait_for([&] { return finish_connect(active, there, &error); }), Status::kOk);
  exhaust();
  Accepted accepted;
  EXPECT_EQ(wait_for([&] { return accept_one(listener, &accepted, &error); }), Status::kNoMemory);
  EXPECT_EQ(error.code, EMFILE);
  EXPECT_THAT(error.what, HasSubstr(there.to_string()));
  EXPECT_THAT(error.what, HasSubstr("ulimit -n"));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0);
  EXPECT_EQ(accept_one(listener, &accepted, &error), Status::kOk);
}

TEST_F(OutOfDescriptors, ConnectAndListenSaySo) {
  exhaust();
  const auto listener = listen_on(loopback());
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().status, Status::kNoMemory);
  const auto fd = start_connect(loopback());
  ASSERT_FALSE(fd);
  EXPECT_THAT(fd.error().what, HasSubstr("ulimit -n"));
}

int option_of(const Fd& fd, int level, int option) {
  int value = -1;
  socklen_t bytes = sizeof value;
  EXPECT_EQ(getsockopt(fd.get(), level, option, &value, &bytes), 0);
  return value;
}

TEST(Socket, Nodelay) {
  const SocketPair pair;
  EXPECT_EQ(option_of(pair.active, IPPROTO_TCP, TCP_NODELAY), 0);
  ASSERT_TRUE(set_nodelay(pair.active));
  EXPECT_EQ(option_of(pair.active, IPPROTO_TCP, TCP_NODELAY), 1);
  EXPECT_FALSE(set_nodelay(Fd()));
}

TEST(Socket, BuffersReportWhatWasGranted) {
  const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int before = option_of(fd, SOL_SOCKET, SO_RCVBUF);
  EXPECT_EQ(set_buffers(fd, 0).value(), 0u);
  EXPECT_EQ(option_of(fd, SOL_SOCKET, SO_RCVBUF), before);  // autotuning goes on
  EXPECT_EQ(set_buffers(fd, 64 << 10).value(), 64u << 10);
  const auto cut = set_buffers(fd, 1 << 30);
  ASSERT_TRUE(cut) << cut.error().what;
  EXPECT_EQ(*cut, static_cast<uint64_t>(std::min(option_of(fd, SOL_SOCKET, SO_RCVBUF),
                                                 option_of(fd, SOL_SOCKET, SO_SNDBUF))) /
                      2);
  EXPECT_EQ(set_buffers(fd, (1u << 30) + 1).error().status, Status::kInvalid);
  EXPECT_EQ(set_buffers(Fd(), 4096).error().code, EBADF);
}

TEST(Socket, TrafficClassMarksPacketsAndTheirPriority) {
  for (const char* host : {"127.0.0.1", "::1"}) {
    const Fd fd(socket(loopback(host).family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd) continue;  // no IPv6 here
    const bool ipv6 = loopback(host).is_ipv6();
    const auto marks = [&] {
      return option_of(fd, ipv6 ? IPPROTO_IPV6 : IPPROTO_IP, ipv6 ? IPV6_TCLASS : IP_TOS);
    };
    ASSERT_TRUE(set_traffic_class(fd, 106));
    EXPECT_EQ(marks(), 104) << "AF31 without the ECN bits";
    EXPECT_EQ(option_of(fd, SOL_SOCKET, SO_PRIORITY), 3);
    ASSERT_TRUE(set_traffic_class(fd, 255)) << "more than 6 needs CAP_NET_ADMIN";
    EXPECT_EQ(marks(), 252);
    EXPECT_EQ(option_of(fd, SOL_SOCKET, SO_PRIORITY), 6);
    ASSERT_TRUE(set_traffic_class(fd, 0));
    EXPECT_EQ(marks(), 0);
  }
  EXPECT_EQ(set_traffic_class(Fd(), 104).error().code, EBADF);
}

TEST(Socket, LongestResendPauseIsAnEighthOfThePatience) {
  constexpr int kRtoMaxMs = 44;  // TCP_RTO_MAX_MS
  const SocketPair pair;
  const auto usual = test::socket_option(pair.active.get(), IPPROTO_TCP, kRtoMaxMs);
  if (!usual) GTEST_SKIP() << "NOT TESTED: this kernel has no TCP_RTO_MAX_MS (Linux 6.15)";
  EXPECT_GE(*usual, 100'000) << "what the kernel does by itself";
  const struct {
    double seconds;
    int pause_ms;
  } cases[] = {{60, 7500}, {1, 1000}, {16, 2000}, {600, 75'000}, {3600, 120'000}};
  for (const auto& c : cases) {
    ASSERT_TRUE(set_longest_resend_pause(pair.active, c.seconds));
    EXPECT_EQ(option_of(pair.active, IPPROTO_TCP, kRtoMaxMs), c.pause_ms) << c.seconds;
  }
  EXPECT_EQ(set_longest_resend_pause(Fd(), 60).error().code, EBADF);
}

TEST(Socket, CongestionControlIsChosenByName) {
  const SocketPair pair("127.0.0.1");
  EXPECT_TRUE(is_within_host(pair.active));
  EXPECT_TRUE(set_congestion_control(pair.active, "reno"));
  char name[16] = {};
  socklen_t length = sizeof name;
  ASSERT_EQ(getsockopt(pair.active.get(), IPPROTO_TCP, TCP_CONGESTION, name, &length), 0);
  EXPECT_STREQ(name, "reno");
  const auto unknown = set_congestion_control(pair.active, "nosuch");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().what.find("TCP_CONGESTION=nosuch"), std::string::npos);
  EXPECT_FALSE(is_within_host(Fd()));
}

TEST(Socket, AcceptedConnectionsInheritTheBuffers) {
  const SocketPair pair("127.0.0.1", nullptr, 32 << 10);
  EXPECT_EQ(option_of(pair.active, SOL_SOCKET, SO_SNDBUF), 64 << 10);
  EXPECT_EQ(option_of(pair.passive.fd, SOL_SOCKET, SO_RCVBUF), 64 << 10);
}

template <size_t kBytes>
using Bytes = ControlMessage<std::array<std::byte, kBytes>>;

template <size_t kBytes>
Bytes<kBytes> random_message(uint32_t seed) {
  Bytes<kBytes> message;
  std::mt19937 random(seed);
  for (auto& byte : message.value) byte = std::byte(random());
  return message;
}

TEST(ControlMessage, ArrivesInPieces) {
  const SocketPair pair("127.0.0.1", nullptr, 8 << 10);
  // Larger than both buffers: neither end can finish without the other.
  auto sent = random_message<512 << 10>(1);
  auto received = std::make_unique<Bytes<512 << 10>>();
  Error error;
  Status sending = Status::kAgain, receiving = Status::kAgain;
  int sender_waited = 0, receiver_waited = 0;
  wait_for([&] {
    if (sending == Status::kAgain) sending = sent.send(pair.active, &error);
    sender_waited += sending == Status::kAgain ? 1 : 0;
    if (receiving == Status::kAgain) receiving = received->receive(pair.passive.fd, &error);
    receiver_waited += receiving == Status::kAgain ? 1 : 0;
    return receiving == Status::kAgain || sending == Status::kAgain ? Status::kAgain : Status::kOk;
  });
  EXPECT_EQ(sending, Status::kOk) << error.what;
  EXPECT_EQ(receiving, Status::kOk) << error.what;
  EXPECT_GT(sender_waited, 0);
  EXPECT_GT(receiver_waited, 0);
  EXPECT_TRUE(sent.value == received->value);
}

TEST(ControlMessage, TakesNothingBeyondItsSize) {
  const SocketPair pair;
  auto sent = random_message<100>(2);
  Error error;
  ASSERT_EQ(sent.send(pair.active, &error), Status::kOk);
  Bytes<60> first;
  ASSERT_EQ(wait_for([&] { return first.receive(pair.passive.fd, &error); }), Status::kOk);
  EXPECT_EQ(memcmp(first.value.data(), sent.value.data(), 60), 0);
  Bytes<40> second;
  ASSERT_EQ(wait_for([&] { return second.receive(pair.passive.fd, &error); }), Status::kOk);
  EXPECT_EQ(memcmp(second.value.data(), sent.value.data() + 60, 40), 0);
}

TEST(ControlMessage, EmptyIsCompleteAtOnce) {
  const SocketPair pair;
  size_t done = 0;
  Error error;
  EXPECT_EQ(receive_message(pair.active, {}, &done, &error), Status::kOk);
  EXPECT_EQ(send_message(pair.active, {}, &done, &error), Status::kOk);
}

TEST(ControlMessage, EndOfStreamIsToldFromAnError) {
  SocketPair pair;
  Error error;
  auto half = random_message<10>(3);
  ASSERT_EQ(half.send(pair.active, &error), Status::kOk);
  pair.active.reset();
  Bytes<20> message;
  EXPECT_EQ(wait_for([&] { return message.receive(pair.passive.fd, &error); }), Status::kRemote);
  EXPECT_EQ(error.code, 0);
  EXPECT_THAT(error.what, HasSubstr(pair.passive.peer.to_string() +
                                    " closed the connection after 10 of 20 bytes"));
}

TEST(ControlMessage, ResetIsARemoteErrorWithItsCode) {
  SocketPair pair;
  const linger abort_at_close{1, 0};
  ASSERT_EQ(setsockopt(pair.active.get(), SOL_SOCKET, SO_LINGER, &abort_at_close, sizeof(linger)),
            0);
  pair.active.reset();
  Bytes<20> message;
  Error error;
  EXPECT_EQ(wait_for([&] { return message.receive(pair.passive.fd, &error); }), Status::kRemote);
  EXPECT_EQ(error.code, ECONNRESET);
}

TEST(ControlMessage, SendToADeadPeerRaisesNoSignal) {
  SocketPair pair;
  pair.passive.fd.reset();
  Error error;
  const Status status = wait_for([&] {
    auto message = random_message<100>(4);
    const Status sent = message.send(pair.active, &error);
    return sent == Status::kOk ? Status::kAgain : sent;
  });
  EXPECT_EQ(status, Status::kRemote);
  EXPECT_TRUE(error.code == EPIPE || error.code == ECONNRESET) << error.what;
}

TEST(ControlMessage, BadDescriptorIsAnError) {
  Bytes<8> message;
  Error error;
  EXPECT_EQ(message.receive(Fd(), &error), Status::kSystem);
  EXPECT_EQ(error.code, EBADF);
  EXPECT_EQ(message.send(Fd(), &error), Status::kSystem);
}

}  // namespace
}  // namespace slime
