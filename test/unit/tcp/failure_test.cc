// Tcp channels whose peer is hostile, gone or closing. The peer is a socket in the test's hand.
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "test/unit/tcp/support.h"

namespace slime::tcp {
namespace {

// A connected channel and, at its other end, a plain socket that has shaken hands.
struct HandMade {
  std::unique_ptr<TcpRail> rail = loopback_rail(roomy());
  std::unique_ptr<Channel> channel;
  Fd peer;
  TestBuffer memory{*rail, 1'000'000, 0xee};
  uint8_t flags = kNeedsNoAck;

  static Settings roomy() {
    Settings settings;
    settings.socket_buffer = 2 << 20;  // the channel can be late with reading
    return settings;
  }

  explicit HandMade(bool confirm_delivery = false) {
    auto opened = rail->open_channel({.active = false, .confirm_delivery = confirm_delivery});
    channel = std::move(*opened);
    const Endpoint there = *unpack_endpoint(channel->address());
    peer = std::move(*start_connect(there.address, {.buffer_bytes = roomy().socket_buffer}));
    EXPECT_TRUE(set_nodelay(peer));
    ControlMessage<Hello> hello;
    hello.value.nonce = there.nonce;
    Error error;
    EXPECT_TRUE(eventually([&] { return hello.send(peer, &error) == Status::kOk; }));
    const ChannelAddress own = pack_endpoint({*SocketAddress::parse("127.0.0.1"), {}});
    EXPECT_TRUE(eventually([&] { return channel->connect(own) == Status::kOk; }));
    ControlMessage<Greeting> answer;
    EXPECT_TRUE(eventually([&] { return answer.receive(peer, &error) == Status::kOk; }));
  }

  FrameHeader write(uint32_t length, uint32_t immediate = 0) {
    FrameHeader header;
    header.type = static_cast<uint8_t>(FrameType::kWrite);
    header.flags = flags;
    header.length = length;
    header.immediate = immediate;
    header.remote_address = reinterpret_cast<uint64_t>(memory.data());
    header.remote_key = memory.keys().remote;
    return header;
  }
  void send(const FrameHeader& header, size_t payload) {
    std::vector<std::byte> stream;
    append_frame(&stream, header, std::vector<std::byte>(payload, std::byte{1}));
    size_t done = 0;
    Error error;
    ASSERT_TRUE(
        eventually([&] { return send_message(peer, stream, &done, &error) == Status::kOk; }));
  }
  // Polls to the failure; what arrives before it is counted.
  size_t await_failure(Status* status) {
    size_t arrived = 0;
    EXPECT_TRUE(eventually([&] {
      arrived += static_cast<size_t>(
          std::ranges::count(poll_once(*channel, status), Done::Kind::kArrived, &Done::kind));
      return *status != Status::kOk;
    }));
    return arrived;
  }
  FrameHeader next_frame() {
    ControlMessage<FrameHeader> header;
    Error error;
    Status status = Status::kOk;
    EXPECT_TRUE(eventually([&] {
      poll_once(*channel, &status);
      return header.receive(peer, &error) == Status::kOk;
    }));
    return header.value;
  }
};

bool mentions(const Channel& channel, const std::string& text) {
  return channel.failure().what.find(text) != std::string::npos;
}

TEST(TcpFailure, AForeignKeyIsNamedInFull) {
  HandMade end;
  FrameHeader header = end.write(5'000, 0x77);
  header.remote_key ^= uint64_t{1} << 50;
  end.send(end.write(10), 10);
  end.send(header, 5'000);
  Status status = Status::kOk;
  EXPECT_EQ(end.await_failure(&status), 1u) << "what came before it is good";
  EXPECT_EQ(status, Status::kRemote);
  char key[32], address[32];
  std::snprintf(key, sizeof(key), "key 0x%lx", static_cast<unsigned long>(header.remote_key));
  std::snprintf(address, sizeof(address), "0x%lx",
                static_cast<unsigned long>(header.remote_address));
  for (const std::string& part :
       {std::string(key), std::string(address), std::string("5000 bytes"), end.channel->peer_name(),
        std::string("not registered"), std::string("immediate 0x77")}) {
    EXPECT_TRUE(mentions(*end.channel, part)) << part << " / " << end.channel->failure().what;
  }
  EXPECT_EQ(end.memory.bytes()[10], std::byte{0xee});
  size_t taken = 0;
  const Work work{};
  EXPECT_EQ(end.channel->post({&work, 1}, &taken), Status::kRemote) << "it failed for good";
  poll_once(*end.channel, &status);
  EXPECT_EQ(status, Status::kRemote);
  char byte;
  EXPECT_TRUE(eventually([&] { return ::recv(end.peer.get(), &byte, 1, 0) == 0; }))
      << "the peer learns of it";
}

TEST(TcpFailure, GarbageOnTheStream) {
  HandMade end;
  const std::string garbage(500, 'A');
  ASSERT_GT(::send(end.peer.get(), garbage.data(), garbage.size(), 0), 0);
  Status status = Status::kOk;
  EXPECT_EQ(end.await_failure(&status), 0u);
  EXPECT_EQ(status, Status::kRemote);
  EXPECT_TRUE(mentions(*end.channel, "not a frame")) << end.channel->failure().what;
}

TEST(TcpFailure, AnAcknowledgementOfNothing) {
  HandMade end(true);
  FrameHeader ack;
  ack.type = static_cast<uint8_t>(FrameType::kAck);
  ack.ack = 1;
  end.send(ack, 0);
  Status status = Status::kOk;
  end.await_failure(&status);
  EXPECT_EQ(status, Status::kRemote);
  EXPECT_TRUE(mentions(*end.channel, "acknowledged")) << end.channel->failure().what;
}

TEST(TcpFailure, TheEndOfThePeerComesAfterItsWorks) {
  HandMade end;
  for (uint32_t i = 0; i < 100; ++i) end.send(end.write(100, i), 100);
  end.peer.reset();
  Status status = Status::kOk;
  EXPECT_EQ(end.await_failure(&status), 100u);
  EXPECT_EQ(status, Status::kRemote);
  EXPECT_TRUE(mentions(*end.channel, "look at its log first")) << end.channel->failure().what;
}

// Version 1 had an offer to read the peer's memory: a process and an address in it, both chosen by
// the peer, read with the rights of this process.
TEST(TcpFailure, NobodyMakesAChannelReadAProcess) {
  const auto rail = loopback_rail();
  const auto channel = std::move(*rail->open_channel({.active = false}));
  const Endpoint there = *unpack_endpoint(channel->address());
  const Nonce ours = *random_nonce();
  struct {
    uint32_t magic = kHelloMagic;
    uint16_t version = 1, flags = 2;
    Nonce nonce;
    const void* address;
    uint32_t process, reserved = 0;
  } const offer{.nonce = there.nonce, .address = &ours, .process = uint32_t(::getpid())};
  const Fd peer = std::move(*start_connect(there.address));
  size_t done = 0;
  Error error;
  ASSERT_TRUE(eventually([&] {
    return send_message(peer, std::as_bytes(std::span(&offer, 1)), &done, &error) == Status::kOk;
  }));
  const ChannelAddress own = pack_endpoint({*SocketAddress::parse("127.0.0.1"), ours});
  ASSERT_TRUE(eventually([&] {
    EXPECT_EQ(channel->connect(own), Status::kAgain);
    char answer;
    const ssize_t got = ::recv(peer.get(), &answer, 1, MSG_DONTWAIT);
    EXPECT_LE(got, 0) << "an answer";
    return testing::Test::HasFailure() || got == 0 || errno == ECONNRESET;
  }));
}

TEST(TcpFailure, AnEndInTheMiddleOfAWorkIsCalledThat) {
  HandMade end;
  end.send(end.write(1000), 999);
  end.peer.reset();
  Status status = Status::kOk;
  EXPECT_EQ(end.await_failure(&status), 0u);
  EXPECT_TRUE(mentions(*end.channel, "in the middle of a work")) << end.channel->failure().what;
}

// Posting meets the broken connection first; what the peer sent before is still reported.
TEST(TcpFailure, ABrokenConnectionGivesItsArrivalsFirst) {
  HandMade end;
  const uint64_t granted = *set_buffers(end.peer, HandMade::roomy().socket_buffer);
  const auto large = static_cast<uint32_t>(std::min<uint64_t>(900'000, granted / 4));
  for (uint32_t i = 0; i < 70; ++i) end.send(end.write(100, i), 100);  // takes several polls
  end.send(end.write(large), large);
  int unacknowledged = 1;  // a reset takes back what the channel's kernel does not have yet
  ASSERT_TRUE(eventually([&] {
    return ::ioctl(end.peer.get(), SIOCOUTQ, &unacknowledged) == 0 && unacknowledged == 0;
  }));
  const linger reset{1, 0};
  ASSERT_EQ(::setsockopt(end.peer.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
  end.peer.reset();
  const Work work{};
  size_t taken = 0;
  Status status = Status::kOk;
  ASSERT_TRUE(eventually([&] {  // the queue holds more works than a reset takes to arrive
    status = end.channel->post({&work, 1}, &taken);
    return status != Status::kOk;
  }));
  EXPECT_EQ(status, Status::kRemote);
  status = Status::kOk;
  EXPECT_EQ(end.await_failure(&status), 71u);
  EXPECT_EQ(status, Status::kRemote);
  EXPECT_TRUE(end.channel->failure().code == ECONNRESET || end.channel->failure().code == EPIPE);
}

TEST(TcpFailure, AWorkOutsideOfLocalMemoryIsNotSent) {
  HandMade end;
  Work work;
  work.local = end.memory.data() + end.memory.size() - 10;
  work.local_key = end.memory.keys().local;
  work.length = 11;
  size_t taken = 1;
  EXPECT_EQ(end.channel->post({&work, 1}, &taken), Status::kInvalid);
  EXPECT_EQ(taken, 0u);
  EXPECT_EQ(end.channel->counters.doorbells.get(), 0u);
  EXPECT_TRUE(mentions(*end.channel, "nothing was sent")) << end.channel->failure().what;
}

TEST(TcpFailure, OneAcknowledgementPerPollThatReportedSomething) {
  HandMade end;
  end.flags = 0;  // its writes want acknowledgements
  for (uint32_t i = 0; i < 10; ++i) end.send(end.write(10, i), 10);
  size_t arrived = 0;
  Status status = Status::kOk;
  ASSERT_TRUE(
      eventually([&] { return (arrived += poll_once(*end.channel, &status, 5).size()) >= 10; }));
  EXPECT_EQ(end.channel->counters.doorbells.get(), 2u);
  EXPECT_EQ(end.next_frame().ack, 5u);
  EXPECT_EQ(end.next_frame().ack, 10u);
  for (int i = 0; i < 10; ++i) poll_once(*end.channel, &status);
  EXPECT_EQ(end.channel->counters.doorbells.get(), 2u);
}

TEST(TcpFailure, WritesThatNeedNoAcknowledgementGetNone) {
  HandMade end;
  end.send(end.write(10), 10);
  Status status = Status::kOk;
  ASSERT_TRUE(eventually([&] { return !poll_once(*end.channel, &status).empty(); }));
  poll_once(*end.channel, &status);
  EXPECT_EQ(end.channel->counters.doorbells.get(), 0u);
}

TEST(TcpFailure, ClosingSendsTheAcknowledgementThatIsOwed) {
  HandMade end;
  end.flags = 0;  // its writes want acknowledgements
  Settings settings;
  end.send(end.write(10), 10);
  Status status = Status::kOk;
  ASSERT_TRUE(eventually([&] { return !poll_once(*end.channel, &status).empty(); }));
  end.channel.reset();
  ControlMessage<FrameHeader> header;
  Error error;
  ASSERT_TRUE(eventually([&] { return header.receive(end.peer, &error) != Status::kAgain; }));
  EXPECT_EQ(header.value.ack, 1u);
}

// Sent means that it arrives, also when this end closes at once with input that nobody read.
TEST(TcpFailure, WhatWasSentSurvivesAnImpoliteClose) {
  HandMade end;
  end.send(end.write(50'000), 50'000);
  Work work;
  work.local = end.memory.data();
  work.local_key = end.memory.keys().local;
  work.length = 100'000;
  size_t sent = 0, posted = 0;
  std::vector<Done> done(1);
  for (int i = 0; i < 100; ++i) {
    posted += post_one(*end.channel, work);
    size_t count = 0;
    ASSERT_EQ(end.channel->poll(std::span(done).first(i % 2), &count), Status::kOk);
    sent += count && done[0].kind == Done::Kind::kSent;
  }
  ASSERT_GT(sent, 0u);
  ASSERT_LT(sent, posted) << "the socket must have been full";
  ASSERT_EQ(::send(end.peer.get(), "unread", 6, MSG_NOSIGNAL), 6);
  end.channel.reset();
  std::vector<std::byte> stream(1 << 20);
  size_t received = 0;
  ssize_t got = -1;
  EXPECT_TRUE(eventually([&] {
    end.rail->closing().poll();
    got = ::recv(end.peer.get(), stream.data(), stream.size(), 0);
    received += got > 0 ? got : 0;
    return got == 0 || (got < 0 && errno != EAGAIN);
  }));
  EXPECT_EQ(got, 0) << "reset instead of ended";
  EXPECT_GE(received, sent * (work.length + kFrameHeaderBytes));
}

TEST(TcpFailure, AFenceEndsIt) {
  HandMade end;
  end.send(end.write(10), 10);
  end.channel->fence();
  Status status = Status::kOk;
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(poll_once(*end.channel, &status).empty());
  EXPECT_EQ(status, Status::kOk);
  EXPECT_EQ(end.memory.bytes()[0], std::byte{0xee});
  const Work work{};
  size_t taken = 1;
  EXPECT_EQ(end.channel->post({&work, 1}, &taken), Status::kRemote);
  EXPECT_EQ(taken, 0u);
  EXPECT_TRUE(mentions(*end.channel, "fenced"));
  char byte;
  EXPECT_TRUE(eventually([&] { return ::recv(end.peer.get(), &byte, 1, 0) == 0; }));
}

TEST(TcpFailure, DeregisteringStopsAWorkHalfWay) {
  HandMade end;
  end.send(end.write(50'000), 20'000);
  Status status = Status::kOk;
  ASSERT_TRUE(eventually([&] {
    poll_once(*end.channel, &status);
    return end.memory.bytes()[19'999] == std::byte{1};
  }));
  end.memory.deregister();
  std::fill(end.memory.bytes().begin(), end.memory.bytes().end(), std::byte{0xee});
  const std::vector<std::byte> rest(30'000, std::byte{1});
  ASSERT_EQ(::send(end.peer.get(), rest.data(), rest.size(), 0), ssize_t(rest.size()));
  EXPECT_EQ(end.await_failure(&status), 0u);
  EXPECT_TRUE(mentions(*end.channel, "not registered")) << end.channel->failure().what;
  EXPECT_TRUE(std::ranges::all_of(end.memory.bytes(), [](auto b) { return b == std::byte{0xee}; }));
}

}  // namespace
}  // namespace slime::tcp
