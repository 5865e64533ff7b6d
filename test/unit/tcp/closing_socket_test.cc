// Sockets of closed channels: what was sent arrives, nothing waits, nothing piles up.
#include <netinet/tcp.h>

#include "settings/times.h"
#include "test/support/manual_clock.h"
#include "test/unit/net/socket_pair.h"
#include "test/unit/tcp/support.h"
#include "transports/tcp/rail.h"

namespace slime::tcp {
namespace {

using test::ManualClock;

struct TcpPair {
  Fd left, right;
};

TcpPair tcp_pair(uint64_t buffer_bytes = 0) {
  test::SocketPair pair("127.0.0.1", nullptr, buffer_bytes);
  return {std::move(pair.active), std::move(pair.passive.fd)};
}

size_t send_all_it_takes(const Fd& fd) {
  const std::vector<std::byte> data(1 << 16, std::byte{1});
  size_t total = 0;
  ssize_t took;
  while ((took = ::send(fd.get(), data.data(), data.size(), MSG_DONTWAIT | MSG_NOSIGNAL)) > 0) {
    total += static_cast<size_t>(took);
  }
  return total;
}

// Reads slowly to the end of the stream. -1: reset before it.
ssize_t receive_all(const Fd& fd, const std::function<void()>& meanwhile) {
  std::vector<std::byte> buffer(1 << 16);
  ssize_t total = 0, got = -1;
  const bool ended = eventually([&] {
    meanwhile();
    got = ::recv(fd.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    total += got > 0 ? got : 0;
    return got == 0 || (got < 0 && errno != EAGAIN);
  });
  EXPECT_TRUE(ended);
  return got == 0 ? total : -1;
}

class TcpClosingSocket : public testing::Test {
 protected:
  // Whatever the test has left, its destructor does not wait for.
  ~TcpClosingSocket() override {
    clock_.pass(times::kLinger);
    closing_.poll();
  }

  ManualClock clock_;
  ClosingSockets closing_{clock_};
};

TEST_F(TcpClosingSocket, OutputArrivesThoughInputWasUnread) {
  TcpPair pair = tcp_pair(256 << 10);
  ASSERT_GT(send_all_it_takes(pair.right), 0u);  // unread input of the left side
  const size_t sent = send_all_it_takes(pair.left);
  ASSERT_GT(sent, 0u);
  closing_.add(ClosingSocket(std::move(pair.left)));
  EXPECT_EQ(closing_.size(), 1u) << "the peer has not read, so output is left";
  EXPECT_EQ(receive_all(pair.right, [&] { closing_.poll(); }), static_cast<ssize_t>(sent));
  EXPECT_TRUE(eventually([&] {
    closing_.poll();
    return closing_.size() == 0;
  }));
}

TEST_F(TcpClosingSocket, OutputArrivesThoughInputComesLater) {
  TcpPair pair = tcp_pair(256 << 10);
  const size_t sent = send_all_it_takes(pair.left);
  closing_.add(ClosingSocket(std::move(pair.left)));
  const auto talk = [&] {
    (void)::send(pair.right.get(), "late", 4, MSG_DONTWAIT | MSG_NOSIGNAL);
    closing_.poll();
  };
  EXPECT_EQ(receive_all(pair.right, talk), static_cast<ssize_t>(sent));
}

// Why an acknowledged socket may be closed though input is unread: the reset that follows does not
// take from the peer what its kernel has.
TEST_F(TcpClosingSocket, AResetLeavesWhatThePeersKernelHas) {
  TcpPair pair = tcp_pair(256 << 10);
  const std::string text(50'000, 'x');
  ASSERT_EQ(::send(pair.right.get(), "unread", 6, 0), 6);
  ASSERT_EQ(::send(pair.left.get(), text.data(), text.size(), 0), ssize_t(text.size()));
  closing_.add(ClosingSocket(std::move(pair.left)));
  ASSERT_TRUE(eventually([&] {
    closing_.poll();
    return closing_.size() == 0;
  }));
  ASSERT_EQ(::send(pair.right.get(), "late", 4, MSG_NOSIGNAL), 4) << "provokes the reset";
  ASSERT_TRUE(eventually([&] { return ::send(pair.right.get(), "late", 4, MSG_NOSIGNAL) < 0; }));
  std::vector<char> buffer(text.size() + 1);
  EXPECT_EQ(::recv(pair.right.get(), buffer.data(), buffer.size(), 0), ssize_t(text.size()));
}

TEST_F(TcpClosingSocket, NothingLeftToSendIsClosedAtOnce) {
  TcpPair pair = tcp_pair();
  closing_.add(ClosingSocket(std::move(pair.left)));
  EXPECT_TRUE(eventually([&] {
    closing_.poll();
    return closing_.size() == 0;
  })) << "the other end is still open, and nothing waits for it";
}

TEST_F(TcpClosingSocket, AConnectionThatNeverWasIsClosedAtOnce) {
  const SocketAddress nobody = *SocketAddress::parse("127.0.0.1:1");
  Fd fd = std::move(*start_connect(nobody));
  Error error;
  ASSERT_TRUE(eventually([&] { return finish_connect(fd, nobody, &error) != Status::kAgain; }));
  closing_.add(ClosingSocket(std::move(fd)));
  EXPECT_EQ(closing_.size(), 0u);
}

TEST_F(TcpClosingSocket, GivesUpAtTheDeadline) {
  TcpPair pair = tcp_pair(64 << 10);
  send_all_it_takes(pair.left);
  closing_.add(ClosingSocket(std::move(pair.left)));
  clock_.pass(times::kLinger - 1);
  closing_.poll();
  EXPECT_EQ(closing_.size(), 1u);
  clock_.pass(1);
  closing_.poll();
  EXPECT_EQ(closing_.size(), 0u);
}

// Nobody may have looked for longer than that: input has to go before the socket does.
TEST_F(TcpClosingSocket, GivingUpLateTakesNothingBack) {
  TcpPair pair = tcp_pair(256 << 10);
  const size_t sent = send_all_it_takes(pair.left);
  closing_.add(ClosingSocket(std::move(pair.left)));
  ASSERT_EQ(::send(pair.right.get(), "unread", 6, 0), 6);
  clock_.pass(times::kLinger);
  EXPECT_EQ(receive_all(pair.right, [&] { closing_.poll(); }), static_cast<ssize_t>(sent));
  EXPECT_EQ(closing_.size(), 0u);
}

TEST_F(TcpClosingSocket, HoldsNoMoreThanItsCapacity) {
  std::vector<Fd> others;
  for (size_t i = 0; i < ClosingSockets::kCapacity + 10; ++i) {
    TcpPair pair = tcp_pair(4 << 10);
    send_all_it_takes(pair.left);
    others.push_back(std::move(pair.right));
    closing_.add(ClosingSocket(std::move(pair.left)));
    ASSERT_LE(closing_.size(), ClosingSockets::kCapacity);
  }
  EXPECT_EQ(closing_.size(), ClosingSockets::kCapacity);
  clock_.pass(times::kLinger);
  closing_.poll();
}

TEST_F(TcpClosingSocket, TheEndWaitsForOutputThatIsStillRead) {
  TcpPair pair = tcp_pair(256 << 10);
  send_all_it_takes(pair.right);
  const size_t sent = send_all_it_takes(pair.left);
  std::thread reader;
  ssize_t received = 0;
  {
    ClosingSockets closing(clock_);
    closing.add(ClosingSocket(std::move(pair.left)));
    reader = std::thread([&] {
      received = receive_all(pair.right, [] {});
      clock_.pass(times::kLastLinger);  // in case that it has failed
    });
  }
  reader.join();
  EXPECT_EQ(received, static_cast<ssize_t>(sent));
}

}  // namespace
}  // namespace slime::tcp
