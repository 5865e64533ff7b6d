// How a dead peer is noticed, and that a live one is never taken for dead. A socket filter that
// drops everything makes one end silent: nothing is acknowledged any more.
#include <gmock/gmock.h>
#include <linux/filter.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <cerrno>

#include "base/net/socket.h"
#include "test/unit/net/socket_pair.h"

namespace slime {
namespace {

using test::now_ns;
using test::sleep_ms;
using test::SocketPair;
using testing::HasSubstr;

constexpr uint64_t kMs = 1'000'000;

int drop_everything(const Fd& fd) {
  sock_filter drop_all[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
  const sock_fprog program{1, drop_all};
  return setsockopt(fd.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

void fall_silent(const Fd& fd) { ASSERT_EQ(drop_everything(fd), 0); }

// Linux lets everybody filter an own socket (socket(7)); hardened kernels ask for root.
class SilentPeer : public testing::Test {
 protected:
  void SetUp() override {
    const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (drop_everything(fd) != 0 && errno == EPERM) {
      GTEST_SKIP() << "this kernel lets only root attach a socket filter";
    }
  }
};

void speak_again(const Fd& fd) {
  const int unused = 0;
  ASSERT_EQ(setsockopt(fd.get(), SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof unused), 0);
}

void send_bytes(const Fd& fd, size_t count) {
  const std::vector<std::byte> bytes(count);
  size_t done = 0;
  Error error;
  ASSERT_EQ(send_message(fd, bytes, &done, &error), Status::kOk);
}

void fill_window(const Fd& fd) {
  const std::vector<std::byte> bytes(64 << 10);
  Error error;
  Status status = Status::kOk;
  for (int i = 0; i < 10000 && status == Status::kOk; ++i) {
    size_t done = 0;
    status = send_message(fd, bytes, &done, &error);
  }
  ASSERT_EQ(status, Status::kAgain);
}

void wait_until_acknowledged(const Fd& fd) {
  const Status status = test::wait_for([&] {
    tcp_info info{};
    socklen_t bytes = sizeof info;
    EXPECT_EQ(getsockopt(fd.get(), IPPROTO_TCP, TCP_INFO, &info, &bytes), 0);
    return info.tcpi_unacked == 0 ? Status::kOk : Status::kAgain;
  });
  ASSERT_EQ(status, Status::kOk);
}

struct Watched {
  Status status = Status::kOk;
  uint64_t after_ns = 0;
  Error error;
};

// Asks every few milliseconds, for at most `patience_ms`.
Watched watch(const Fd& fd, uint64_t limit_ns, int patience_ms) {
  SilenceWatch silence;
  Watched result;
  const uint64_t start = now_ns();
  while (result.status == Status::kOk && now_ns() - start < patience_ms * kMs) {
    result.status = silence.check(fd, now_ns(), limit_ns, &result.error);
    result.after_ns = now_ns() - start;
    sleep_ms(5);
  }
  return result;
}

TEST_F(SilentPeer, IsFoundWhenItAcknowledgesNothing) {
  const SocketPair pair;
  fall_silent(pair.passive.fd);
  send_bytes(pair.active, 100);
  const Watched watched = watch(pair.active, 400 * kMs, 60'000);
  EXPECT_EQ(watched.status, Status::kTimeout);
  EXPECT_GE(watched.after_ns, 400 * kMs);
  EXPECT_EQ(watched.error.code, ETIMEDOUT);
  EXPECT_THAT(watched.error.what, HasSubstr(peer_address(pair.active)->to_string()));
  EXPECT_THAT(watched.error.what, HasSubstr("NCCL_SLIME_PEER_TIMEOUT"));
}

TEST_F(SilentPeer, OwesAnAcknowledgement) {
  const SocketPair pair;
  fall_silent(pair.passive.fd);
  sleep_ms(60);
  EXPECT_FALSE(is_silent(pair.active, 50 * kMs)) << "nothing waits for an acknowledgement";
  send_bytes(pair.active, 100);
  EXPECT_EQ(test::wait_for(
                [&] { return is_silent(pair.active, 200 * kMs) ? Status::kOk : Status::kAgain; }),
            Status::kOk);
  EXPECT_FALSE(is_silent(pair.active, 3600 * 1000 * kMs));
  EXPECT_FALSE(is_silent(Fd(), 0));
}

TEST(SilenceWatch, LeavesAPeerThatDoesNotReadAlone) {
  // A rank under a debugger: its kernel answers probes of the full window, its process does not
  // read.
  const SocketPair pair("127.0.0.1", nullptr, 8 << 10);
  fill_window(pair.active);
  const Watched watched = watch(pair.active, 300 * kMs, 2500);
  EXPECT_EQ(watched.status, Status::kOk) << watched.error.what;
}

TEST_F(SilentPeer, IsFoundBehindAFullWindow) {
  const SocketPair pair("127.0.0.1", nullptr, 8 << 10);
  fill_window(pair.active);
  sleep_ms(50);
  fall_silent(pair.passive.fd);
  // Probes of a full window come less and less often: it may be the sixth, after 12.6 seconds.
  const Watched watched = watch(pair.active, 300 * kMs, 60'000);
  EXPECT_EQ(watched.status, Status::kTimeout);
}

TEST_F(SilentPeer, AnIdleConnectionIsNotSilent) {
  const SocketPair pair;
  fall_silent(pair.passive.fd);
  const Watched watched = watch(pair.active, 50 * kMs, 400);
  EXPECT_EQ(watched.status, Status::kOk);
}

TEST_F(SilentPeer, CountsFromTheFirstByteThatWaits) {
  // Idle for longer than the limit, then a byte: the time before it does not count.
  const SocketPair pair;
  SilenceWatch silence;
  Error error;
  EXPECT_EQ(silence.check(pair.active, now_ns(), 200 * kMs, &error), Status::kOk);
  sleep_ms(400);
  fall_silent(pair.passive.fd);
  send_bytes(pair.active, 1);
  const uint64_t sent_ns = now_ns();
  EXPECT_EQ(silence.check(pair.active, sent_ns, 200 * kMs, &error), Status::kOk);
  EXPECT_EQ(silence.check(pair.active, sent_ns + 199 * kMs, 200 * kMs, &error), Status::kOk);
  EXPECT_EQ(silence.check(pair.active, sent_ns + 201 * kMs, 200 * kMs, &error), Status::kTimeout);
}

TEST_F(SilentPeer, WaitsThatAreApartDoNotAddUp) {
  // Nobody checks an idle comm, so two checks may be far apart: a byte in flight at each of them
  // does not mean that the peer was silent in between.
  const SocketPair pair;
  SilenceWatch silence;
  Error error;
  fall_silent(pair.passive.fd);
  send_bytes(pair.active, 1);
  EXPECT_EQ(silence.check(pair.active, now_ns(), 100 * kMs, &error), Status::kOk);
  speak_again(pair.passive.fd);
  wait_until_acknowledged(pair.active);
  sleep_ms(200);
  fall_silent(pair.passive.fd);
  send_bytes(pair.active, 1);
  const uint64_t sent_ns = now_ns();
  EXPECT_EQ(silence.check(pair.active, sent_ns, 100 * kMs, &error), Status::kOk);
  EXPECT_EQ(silence.check(pair.active, sent_ns + 101 * kMs, 100 * kMs, &error), Status::kTimeout);
}

TEST(SilenceWatch, ABusyConnectionIsNotSilent) {
  // Every check finds bytes in flight, and acknowledgements since the one before.
  const SocketPair pair;
  std::vector<std::byte> sink(1 << 20);
  SilenceWatch silence;
  Error error;
  const uint64_t start = now_ns();
  while (now_ns() - start < 400 * kMs) {
    const std::vector<std::byte> bytes(64 << 10);
    size_t sent = 0, received = 0;
    (void)send_message(pair.active, bytes, &sent, &error);
    ASSERT_EQ(silence.check(pair.active, now_ns(), 100 * kMs, &error), Status::kOk) << error.what;
    (void)receive_message(pair.passive.fd, sink, &received, &error);
  }
}

TEST(SilenceWatch, BadDescriptorIsAnError) {
  SilenceWatch silence;
  Error error;
  EXPECT_EQ(silence.check(Fd(), 1, 1, &error), Status::kSystem);
  EXPECT_EQ(error.code, EBADF);
}

int tcp_option(const Fd& fd, int option) {
  int value = -1;
  socklen_t bytes = sizeof value;
  EXPECT_EQ(getsockopt(fd.get(), IPPROTO_TCP, option, &value, &bytes), 0);
  return value;
}

TEST(Keepalive, IsDerivedFromTheTimeout) {
  const SocketPair pair;
  for (const double seconds : {1.0, 2.5, 10.0, 60.0, 600.0}) {
    ASSERT_TRUE(set_keepalive(pair.active, seconds));
    const int idle = tcp_option(pair.active, TCP_KEEPIDLE);
    const int probing =
        tcp_option(pair.active, TCP_KEEPINTVL) * tcp_option(pair.active, TCP_KEEPCNT);
    EXPECT_GE(idle + probing, seconds * 0.8) << seconds;
    EXPECT_LE(idle + probing, seconds + 1) << seconds;
  }
  EXPECT_TRUE(set_keepalive(pair.active, 86400));  // longer than the kernel's limits
  for (const double bad : {0.0, -1.0, 1e300}) {
    EXPECT_EQ(set_keepalive(pair.active, bad).error().status, Status::kInvalid);
  }
  EXPECT_EQ(set_keepalive(Fd(), 10).error().code, EBADF);
}

TEST_F(SilentPeer, KeepaliveFailsAnIdleConnection) {
  const SocketPair pair;
  ASSERT_TRUE(set_keepalive(pair.active, 2));
  fall_silent(pair.passive.fd);
  pollfd broken{pair.active.get(), POLLIN, 0};
  ASSERT_EQ(poll(&broken, 1, 60'000), 1);
  ControlMessage<std::byte> message;
  Error error;
  EXPECT_EQ(message.receive(pair.active, &error), Status::kTimeout);
  EXPECT_EQ(error.code, ETIMEDOUT);
}

}  // namespace
}  // namespace slime
