// Who may connect to a rail, and what happens to everybody else.

#include <atomic>
#include <mutex>

#include "base/log.h"
#include "test/support/manual_clock.h"
#include "test/support/strangers.h"
#include "test/unit/tcp/support.h"
#include "transports/tcp/acceptor.h"

namespace slime::tcp {
namespace {

std::mutex log_mutex;
std::vector<std::string> log_lines;

void keep_line(log::Level, const char*, int, const char* text) {
  const std::lock_guard lock(log_mutex);
  log_lines.emplace_back(text);
}

class TcpAcceptor : public testing::Test {
 protected:
  TcpAcceptor() : acceptor_("lo", *SocketAddress::parse("127.0.0.1"), settings(), clock_) {
    log_lines.clear();
    log::set_sink(keep_line);
    expected_ = *random_nonce();
    address_ = *acceptor_.expect(expected_);
  }
  ~TcpAcceptor() override { log::set_sink(nullptr); }

  static Settings settings() {
    Settings settings;
    settings.handshake_timeout = kHandshakeNs / 1e9;
    return settings;
  }
  Fd dial() {
    Fd fd = std::move(*start_connect(address_));
    Error error;
    EXPECT_TRUE(eventually([&] { return finish_connect(fd, address_, &error) == Status::kOk; }))
        << error.what;
    return fd;
  }
  static void say(const Fd& fd, std::span<const std::byte> bytes) {
    (void)::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  static void say(const Fd& fd, const Hello& hello) {
    say(fd, std::as_bytes(std::span(&hello, 1)));
  }
  static bool dropped(const Fd& fd) {
    char byte;
    const ssize_t got = ::recv(fd.get(), &byte, 1, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno == ECONNRESET);
  }
  Hello good_hello() const {
    Hello hello;
    hello.nonce = expected_;
    return hello;
  }
  Status take() { return acceptor_.take(expected_, &arrival_, &error_); }
  void expect_dropped(const Fd& stranger) {
    EXPECT_TRUE(eventually([&] {
      EXPECT_EQ(take(), Status::kAgain);
      return dropped(stranger);
    }));
    EXPECT_EQ(acceptor_.strangers(), 1u);
  }

  std::string only_line() {
    const std::lock_guard lock(log_mutex);
    EXPECT_EQ(log_lines.size(), 1u);
    return log_lines.empty() ? "" : log_lines[0];
  }

  static constexpr uint64_t kHandshakeNs = 300'000'000;

  test::ManualClock clock_;
  Acceptor acceptor_;
  Nonce expected_;
  SocketAddress address_;
  Arrival arrival_;
  Error error_;
};

TEST_F(TcpAcceptor, TheRightNonceGetsIn) {
  EXPECT_EQ(take(), Status::kAgain);
  const Fd peer = dial();
  say(peer, good_hello());
  ASSERT_TRUE(eventually([&] { return take() != Status::kAgain; }));
  EXPECT_TRUE(arrival_.fd);
  EXPECT_EQ(arrival_.peer, *local_address(peer));
  EXPECT_EQ(acceptor_.strangers(), 0u);
}

TEST_F(TcpAcceptor, AHelloInPiecesGetsIn) {
  const Fd peer = dial();
  const Hello hello = good_hello();
  const auto bytes = std::as_bytes(std::span(&hello, 1));
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(take(), Status::kAgain);
    say(peer, bytes.subspan(i, 1));
  }
  EXPECT_TRUE(eventually([&] { return take() == Status::kOk; }));
}

// Nobody would read what it says after that, or notice its end.
TEST_F(TcpAcceptor, WhoHasSaidNothingYetIsDroppedWithTheLastThatIsExpected) {
  const Nonce another = *random_nonce();
  ASSERT_TRUE(acceptor_.expect(another));
  const Fd silent = dial();
  const Fd peer = dial();
  say(peer, good_hello());
  ASSERT_TRUE(eventually([&] { return take() == Status::kOk; }));
  EXPECT_FALSE(dropped(silent)) << "it may be for the other channel";
  acceptor_.forget(another);
  EXPECT_TRUE(eventually([&] { return dropped(silent); }));
  EXPECT_NE(only_line().find("nobody is expected any more"), std::string::npos) << only_line();
}

TEST_F(TcpAcceptor, AWrongNonceIsDroppedAndNamed) {
  const Fd stranger = dial();
  Hello hello = good_hello();
  hello.nonce[15] ^= std::byte{1};
  say(stranger, hello);
  expect_dropped(stranger);
  const std::string line = only_line();
  EXPECT_NE(line.find(local_address(stranger)->to_string()), std::string::npos) << line;
  EXPECT_NE(line.find("nonce"), std::string::npos) << line;
}

TEST_F(TcpAcceptor, AnotherVersionIsDroppedAndSaid) {
  const Fd stranger = dial();
  Hello hello = good_hello();
  hello.version = kVersion + 1;
  say(stranger, hello);
  expect_dropped(stranger);
  EXPECT_NE(only_line().find("another version"), std::string::npos);
}

TEST_F(TcpAcceptor, AnUnknownFlagIsDroppedAndSaid) {
  const Fd stranger = dial();
  Hello hello = good_hello();
  hello.flags = 2;
  say(stranger, hello);
  expect_dropped(stranger);
  EXPECT_NE(only_line().find("asks for something"), std::string::npos);
}

TEST_F(TcpAcceptor, GarbageIsDroppedByItsFirstBytesAndShown) {
  const Fd stranger = dial();
  const std::string request = "GET / HTTP\r\n";
  say(stranger, std::as_bytes(std::span(request)));
  expect_dropped(stranger);
  const std::string line = only_line();
  EXPECT_NE(line.find("GET / HTTP\\x0d\\x0a"), std::string::npos) << line;
  EXPECT_NE(line.find("does not speak our protocol"), std::string::npos) << line;
}

TEST_F(TcpAcceptor, SilenceIsDroppedAtTheDeadline) {
  const Fd stranger = dial();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(take(), Status::kAgain);
  EXPECT_FALSE(dropped(stranger)) << "its time is not over";
  EXPECT_TRUE(eventually([&] {
    clock_.pass(kHandshakeNs);  // from when the acceptor saw it, which may be now
    EXPECT_EQ(take(), Status::kAgain);
    return dropped(stranger);
  }));
  EXPECT_EQ(acceptor_.strangers(), 1u);
  EXPECT_NE(only_line().find("no whole hello in time"), std::string::npos);
}

TEST_F(TcpAcceptor, AHelloThatIsRepeatedGetsInOnce) {
  const Fd peer = dial(), copy = dial();
  say(peer, good_hello());
  say(copy, good_hello());
  ASSERT_TRUE(eventually([&] { return take() == Status::kOk; }));
  ASSERT_TRUE(eventually([&] {
    EXPECT_EQ(take(), Status::kAgain);
    return acceptor_.strangers() == 1 && (dropped(copy) || dropped(peer));
  }));
  EXPECT_TRUE(dropped(copy) != dropped(peer));
}

TEST_F(TcpAcceptor, AFloodOfStrangersKeepsNobodyOutAndTheLogShort) {
  std::vector<Fd> strangers;
  for (size_t i = 0; i < Acceptor::kPlaces + 20; ++i) {
    strangers.push_back(dial());
    if (i % 3 == 0) say(strangers.back(), std::as_bytes(std::span("garbage that is no hello")));
  }
  const Fd peer = dial();
  say(peer, good_hello());
  EXPECT_TRUE(eventually([&] {
    const bool came = take() == Status::kOk;
    if (!came) clock_.pass(Acceptor::kGraceNs);
    return came;
  }));
  clock_.pass(kHandshakeNs);  // of those that are silent; they were accepted before the peer
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(take(), Status::kAgain);
    return acceptor_.strangers() == strangers.size();
  }));
  const std::lock_guard lock(log_mutex);
  EXPECT_EQ(log_lines.size(), 1u) << "one a second";
}

TEST_F(TcpAcceptor, ManyStrangersDoNotDelayAPeer) {
  test::Strangers strangers;
  SLIME_NEEDS_MANY(strangers);
  Settings patient;
  patient.handshake_timeout = 60;
  Acceptor acceptor("lo", *SocketAddress::parse("127.0.0.1"), patient, clock_);
  const SocketAddress address = *acceptor.expect(expected_);
  uint64_t passed_ns = 0;
  const auto look = [&] {
    constexpr uint64_t kMillisecond = 1'000'000, kSecond = 1'000'000'000;
    if ((passed_ns += kMillisecond) <= kSecond) clock_.pass(kMillisecond);
    return acceptor.take(expected_, &arrival_, &error_);
  };
  strangers.come(address, test::Strangers::kMany, [&] { EXPECT_EQ(look(), Status::kAgain); });
  passed_ns = 0;
  const Fd peer = *start_connect(address);
  const Hello hello = good_hello();
  size_t done = 0;
  Status sent = Status::kAgain;
  ASSERT_TRUE(eventually([&] {
    Error error;
    if (sent != Status::kOk && finish_connect(peer, address, &error) == Status::kOk) {
      sent = send_message(peer, std::as_bytes(std::span(&hello, 1)), &done, &error);
    }
    return look() == Status::kOk;
  }));
  const std::lock_guard lock(log_mutex);
  EXPECT_LE(log_lines.size(), 3u) << "one a second";
}

TEST_F(TcpAcceptor, AForgottenNonceIsAStranger) {
  acceptor_.forget(expected_);
  const Fd late = dial();
  say(late, good_hello());
  expect_dropped(late);
}

TEST_F(TcpAcceptor, EveryChannelGetsItsOwnPeer) {
  constexpr size_t kChannels = 20;
  std::vector<Nonce> nonces;
  std::vector<Fd> peers;
  for (size_t i = 0; i < kChannels; ++i) {
    nonces.push_back(*random_nonce());
    EXPECT_EQ(*acceptor_.expect(nonces[i]), address_) << "one listener per rail";
  }
  for (size_t i = 0; i < kChannels; ++i) {
    peers.push_back(dial());
    Hello hello;
    hello.nonce = nonces[kChannels - 1 - i];
    say(peers[i], hello);
  }
  std::vector<std::thread> threads;
  std::atomic<size_t> right{0};
  for (size_t i = 0; i < kChannels; ++i) {
    threads.emplace_back([&, i] {
      Arrival arrival;
      Error error;
      EXPECT_TRUE(
          eventually([&] { return acceptor_.take(nonces[i], &arrival, &error) == Status::kOk; }));
      right += arrival.peer == *local_address(peers[kChannels - 1 - i]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, kChannels);
}

}  // namespace
}  // namespace slime::tcp
